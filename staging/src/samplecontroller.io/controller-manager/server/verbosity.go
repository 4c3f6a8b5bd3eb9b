// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strconv"

	"k8s.io/component-base/logs"
)

// MaxVerbosity is the highest verbosity of the log. Above it client-go logs the bodies
// of requests and answers: objects, and, in TokenReviews, the bearer tokens of those who
// ask for metrics.
const MaxVerbosity = 7

// setVerbosity sets the verbosity of the log, to [MaxVerbosity] if it is to be higher,
// and returns what to answer.
func setVerbosity(value string) (string, error) {
	wanted, err := strconv.ParseUint(value, 10, 32)
	if err != nil || wanted <= MaxVerbosity {
		return logs.GlogSetter(value)
	}
	answer, err := logs.GlogSetter(strconv.Itoa(MaxVerbosity))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, not to %d: above %d the log would show objects and tokens", answer, wanted, MaxVerbosity), nil
}

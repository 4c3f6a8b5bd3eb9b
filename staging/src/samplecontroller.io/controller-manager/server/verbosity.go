// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strconv"

	"k8s.io/component-base/logs"

	"samplecontroller.io/controller-manager/internal/redact"
)

// setVerbosity sets the verbosity of the log, to [redact.MaxVerbosity] if it is to be higher,
// and returns what to answer.
func setVerbosity(value string) (string, error) {
	wanted, err := strconv.ParseUint(value, 10, 32)
	if err != nil || wanted <= redact.MaxVerbosity {
		return logs.GlogSetter(value)
	}
	answer, err := logs.GlogSetter(strconv.Itoa(redact.MaxVerbosity))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, not to %d: above %d the log would show objects and tokens", answer, wanted, redact.MaxVerbosity), nil
}

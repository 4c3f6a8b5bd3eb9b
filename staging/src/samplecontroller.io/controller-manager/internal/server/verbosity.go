// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strconv"

	"k8s.io/component-base/logs"

	internallogs "samplecontroller.io/controller-manager/internal/logs"
)

// setVerbosity sets the log verbosity, but at most to [internallogs.MaxVerbosity]. It returns
// the text of the response.
func setVerbosity(value string) (string, error) {
	wanted, err := strconv.ParseUint(value, 10, 32)
	if err != nil || wanted <= internallogs.MaxVerbosity {
		return logs.GlogSetter(value)
	}
	answer, err := logs.GlogSetter(strconv.Itoa(internallogs.MaxVerbosity))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s instead of %d: above %d the log would contain objects and tokens", answer, wanted, internallogs.MaxVerbosity), nil
}

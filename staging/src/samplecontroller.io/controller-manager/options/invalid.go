// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// InvalidFlags are all that is wrong with a command line, reported together.
type InvalidFlags []error

// Error implements error: one line for each mistake.
func (m InvalidFlags) Error() string {
	lines := []string{fmt.Sprintf("the command line has %d mistakes:", len(m))}
	if len(m) == 1 {
		lines[0] = "the command line has a mistake:"
	}
	for _, err := range m {
		lines = append(lines, "  "+err.Error())
	}
	return strings.Join(lines, "\n")
}

// asError returns nil if there are none, and takes apart those that come as
// several in one.
func (m InvalidFlags) asError() error {
	if len(m) == 0 {
		return nil
	}
	return InvalidFlags(utilerrors.Flatten(utilerrors.NewAggregate(m)).Errors())
}

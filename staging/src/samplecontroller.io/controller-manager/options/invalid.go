// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// InvalidFlags are the errors of a command line, reported together.
type InvalidFlags []error

// Error implements error: one line for each flag.
func (f InvalidFlags) Error() string {
	lines := []string{fmt.Sprintf("invalid flags (%d):", len(f))}
	for _, err := range f {
		lines = append(lines, "  "+err.Error())
	}
	return strings.Join(lines, "\n")
}

// asError returns nil if there are none, and splits errors that hold several.
func (f InvalidFlags) asError() error {
	if len(f) == 0 {
		return nil
	}
	return InvalidFlags(utilerrors.Flatten(utilerrors.NewAggregate(f)).Errors())
}

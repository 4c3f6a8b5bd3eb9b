// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// InvalidFlags is the list of all errors of a command line.
type InvalidFlags []error

// Error implements error. It returns one line for each invalid flag.
func (f InvalidFlags) Error() string {
	lines := []string{fmt.Sprintf("invalid flags (%d):", len(f))}
	for _, err := range f {
		lines = append(lines, "  "+err.Error())
	}
	return strings.Join(lines, "\n")
}

// asError returns nil for an empty list, and splits aggregate errors.
func (f InvalidFlags) asError() error {
	if len(f) == 0 {
		return nil
	}
	return InvalidFlags(utilerrors.Flatten(utilerrors.NewAggregate(f)).Errors())
}

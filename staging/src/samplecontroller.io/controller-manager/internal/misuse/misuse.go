// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package misuse marks errors that are mistakes in a program which uses the library. They show at
// the first start and in any test, so they end the process, and need no stack.
package misuse

import (
	"errors"
	"fmt"
)

// Error is a mistake in the program. Functions that return no error panic with it.
type Error struct{ err error }

// New returns err as a mistake in the program, nil for nil.
func New(err error) error {
	if err == nil {
		return nil
	}
	return &Error{err}
}

// Errorf is like fmt.Errorf.
func Errorf(format string, args ...any) error { return New(fmt.Errorf(format, args...)) }

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.err }

// Is returns whether err is or wraps a mistake in the program.
func Is(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

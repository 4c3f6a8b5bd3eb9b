// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"
)

// UserError returns an error that only a user can fix, such as an invalid value. When a sync
// function returns it, a Warning Event with the reason reports it, once for each text. The
// object is synced again when it changes. reason is in UpperCamelCase. UserError returns nil
// if err is nil.
func UserError(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &userError{reason: reason, err: err}
}

type userError struct {
	reason string
	again  time.Duration // delay before the next sync; 0: none
	err    error
}

func (e *userError) Error() string { return e.err.Error() }

func (e *userError) Unwrap() error { return e.err }

// onlyUserErrors returns whether all parts of an error, such as those of errors.Join, are user
// errors. Other errors need a retry.
func onlyUserErrors(err error) bool {
	switch err := err.(type) {
	case *userError:
		return true
	case interface{ Unwrap() error }:
		return onlyUserErrors(err.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(part error) bool { return !onlyUserErrors(part) })
	}
	return false
}

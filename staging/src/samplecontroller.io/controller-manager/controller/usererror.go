// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import "time"

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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
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

// reportedErrors remembers the last user error of each object, to report each error once.
type reportedErrors struct {
	mutex sync.Mutex
	last  map[cache.ObjectName]string
}

// add records text as the last error of the object. It returns false if it already was.
func (r *reportedErrors) add(key cache.ObjectName, text string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.last == nil {
		r.last = map[cache.ObjectName]string{}
	}
	if r.last[key] == text {
		return false
	}
	r.last[key] = text
	return true
}

// forget removes an object that no longer has a user error, or is gone.
func (r *reportedErrors) forget(key cache.ObjectName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.last, key)
}

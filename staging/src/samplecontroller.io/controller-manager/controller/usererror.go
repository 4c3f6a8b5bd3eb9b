// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// UserError returns an error that the user of the object must correct, and no retry can: a
// value that is not valid, for example. Returned by a sync function, it becomes a Warning
// Event about the object with the reason, once for each text, and the object is synced again
// when it changes. reason is in UpperCamelCase. UserError returns nil if err is nil.
func UserError(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &userError{reason: reason, err: err}
}

type userError struct {
	reason string
	again  time.Duration // after which it is worth to look again; 0: never
	err    error
}

func (e *userError) Error() string { return e.err.Error() }

func (e *userError) Unwrap() error { return e.err }

// told remembers the last user error of each object, so that each is reported once.
type told struct {
	mutex sync.Mutex
	last  map[cache.ObjectName]string
}

// tell returns true unless the text is the last one reported for the object.
func (t *told) tell(key cache.ObjectName, text string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.last == nil {
		t.last = map[cache.ObjectName]string{}
	}
	if t.last[key] == text {
		return false
	}
	t.last[key] = text
	return true
}

// forget forgets an object that has no user error any more, or is gone.
func (t *told) forget(key cache.ObjectName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.last, key)
}

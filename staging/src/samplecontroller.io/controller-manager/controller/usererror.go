// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"regexp"
	"time"

	"samplecontroller.io/controller-manager/internal/misuse"
)

// UserError returns an error that only a user can fix, such as an invalid value. When the function
// given to [Builder.Reconcile] returns it, a Warning Event with the reason reports it, once for each
// text. The Event has the first 1000 bytes of the text. The object is reconciled again when it
// changes. reason must be in UpperCamelCase, or UserError panics. It returns nil if err is nil.
func UserError(reason string, err error) error {
	if err == nil {
		return nil
	}
	mustBeReason("UserError", reason)
	return &userError{reason: reason, err: err}
}

// RetryAfter returns an error that ends by itself, but that more tries do not end sooner, such as an
// outage of an external system. When the function given to [Builder.Reconcile] or [Builder.Finalize]
// returns it, the object is reconciled again after d, at least a second, or when it changes; after at most
// 30 s if it is joined with an error that needs a retry. A Warning Event with the reason reports it, and the
// log, once for each text. The object counts as failing.
// reason must be in UpperCamelCase, or RetryAfter panics. It returns nil if err is nil.
func RetryAfter(reason string, err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	mustBeReason("RetryAfter", reason)
	return &externalError{reason: reason, err: err, again: max(d, time.Second)}
}

var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// mustBeReason panics if a reason cannot be that of an Event.
func mustBeReason(caller, reason string) {
	if !reasonPattern.MatchString(reason) {
		panic(misuse.Errorf("the reason %q of %s is not in UpperCamelCase, such as SourceMissing", reason, caller))
	}
}

type externalError struct {
	reason string
	err    error
	again  time.Duration
}

func (e *externalError) Error() string { return e.err.Error() }

func (e *externalError) Unwrap() error { return e.err }

type userError struct {
	reason string        // empty: not reported, because the cause usually ends by itself
	again  time.Duration // delay before the next sync; 0: none
	err    error
}

func (e *userError) Error() string { return e.err.Error() }

func (e *userError) Unwrap() error { return e.err }

// parts are what an error, such as one of errors.Join, consists of.
type parts struct {
	users    []*userError
	user     *userError // the first that is to be reported
	external *externalError
	failure  bool // a [Failure] is among them
	ending   bool // an error because a namespace is being deleted is among them
	other    bool // another error, which needs a retry, is among them
}

func partsOf(err error) (p parts) {
	p.add(err)
	return p
}

func (p *parts) add(err error) {
	switch err := err.(type) {
	case nil:
	case *userError:
		p.users = append(p.users, err)
		if err.reason != "" {
			p.user = cmp.Or(p.user, err)
		}
	case *externalError:
		p.external = cmp.Or(p.external, err)
	case *Failure:
		p.failure = true
	case interface{ Unwrap() []error }:
		for _, part := range err.Unwrap() {
			p.add(part)
		}
	case interface{ Unwrap() error }:
		if cause := err.Unwrap(); cause != nil {
			p.add(cause)
		} else {
			p.other = true
		}
	default:
		ending := isTerminating(err)
		p.ending, p.other = p.ending || ending, p.other || !ending
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxSilence is how long a watch may be silent, and a request unanswered, before the
	// informer gives it up. The API server sends a bookmark about once a minute.
	maxSilence = 3 * time.Minute
	// patience is how long a request, or a stream of initial objects, may show nothing before
	// it counts as failed.
	patience = 30 * time.Second
	// maxInterruption is how long a watch may be interrupted and still be resumed. The longer
	// that is, the more writes can follow the restore of a backup of etcd unseen.
	maxInterruption = 5 * time.Second
	// shortWatch is how long a watch without events must last.
	shortWatch = time.Second
	// maxShortWatches is how many short watches in a row cause a list. They come once a second.
	maxShortWatches = 10
)

// errShortWatches is the cause of the phase cut.
var errShortWatches = errors.New("watches end at once, so objects are listed every 10 seconds")

// phase is the last that is known about reading a resource.
type phase int

const (
	unknown  phase = iota // nothing, or that the API server answers
	denied                // the API is absent, or permission to read is missing
	failing               // the last request failed, or has no answer
	listed                // there is a complete list, but no watch that continues it yet
	watching              // the watch works
	cut                   // watches end at once
	silent                // the last watch sent nothing for maxSilence, nor did another since
)

// state is what is known about reading a resource. Most methods are events. Not all events
// change each phase: see TestStateTransitions. It is guarded by the mutex of the factory.
type state struct {
	phase phase
	// cause is why the phase is denied, failing, cut or silent.
	cause error
	// served is whether the cache has had all objects since the last denial. since is when
	// that or the kind of denial changed.
	served bool
	since  time.Time
	// version is the resourceVersion of the last complete list. nil means that a new list is
	// required.
	version *string
	// sign is the last sign of life of the watch. Watches that do not prove to work give none.
	sign time.Time
	// ended is when the last watch after the list ended. It is zero if there was none.
	ended        time.Time
	shortWatches int // in a row
}

// answered is the event that a request was permitted.
func (s *state) answered() {
	if s.phase == denied {
		s.phase, s.cause, s.since = unknown, nil, time.Now()
	}
}

// deny is the event that a request failed because the API is absent or permission is missing.
func (s *state) deny(cause error) {
	if s.served || s.phase != denied || rank(s.cause) != rank(cause) {
		s.since = time.Now()
	}
	s.phase, s.cause, s.served, s.version, s.shortWatches = denied, cause, false, nil, 0
}

// fail is the event that a request failed otherwise, or has no answer.
func (s *state) fail(cause error) {
	switch s.phase {
	case denied, cut, silent: // more specific
	default:
		s.phase, s.cause = failing, cause
	}
}

// list is the event that a list of this version is complete.
func (s *state) list(version string) {
	s.version, s.ended = &version, time.Time{}
	if s.phase == unknown {
		s.phase = listed
	}
}

// open is the event that a watch which continues the list was opened.
func (s *state) open() {
	if s.shortWatches == 0 && s.phase != cut && s.phase != silent {
		s.works()
	}
}

// last is the event that the watch has been open for shortWatch.
func (s *state) last() {
	proven := s.shortWatches > 0
	s.shortWatches = 0
	if proven && s.phase != silent {
		s.works()
	}
}

// hear is the event that the watch sent an event or a bookmark.
func (s *state) hear() {
	s.shortWatches = 0
	s.works()
}

func (s *state) works() { s.phase, s.cause, s.sign = watching, nil, time.Now() }

// end is the event that the watch ended. A short one sent nothing and lasted less than
// shortWatch.
func (s *state) end(short bool) {
	s.ended = time.Now()
	if !short {
		return
	}
	s.shortWatches++
	if s.shortWatches%maxShortWatches == 0 {
		s.version = nil
		if s.phase != silent {
			s.phase, s.cause = cut, errShortWatches
		}
	}
}

// mute is the event that the watch sent nothing for maxSilence.
func (s *state) mute() {
	s.version = nil
	s.phase, s.cause = silent, fmt.Errorf("the watch has been silent since %s", s.sign.UTC().Format(time.RFC3339))
}

// expire is the event that watches cannot continue from the version of the cache.
func (s *state) expire() { s.version = nil }

// cache is the event that the cache has caught up with the last list.
func (s *state) cache() { s.served, s.since = true, time.Now() }

// follows reports whether the cache follows the API server, as far as is known.
func (s *state) follows() bool { return s.phase != cut && s.phase != silent }

// failure returns why the last list or watch failed, nil if it did not, or was denied.
func (s *state) failure() error {
	if s.phase == denied {
		return nil
	}
	return s.cause
}

// reason returns why the resource of the given name is not served, nil if it is.
func (s *state) reason(name string) error {
	switch {
	case s.served:
		return nil
	case s.phase == denied:
		return s.cause
	case s.cause != nil:
		return fmt.Errorf("%w: %s: %w", ErrNotSynced, name, s.cause)
	}
	return fmt.Errorf("%w: %s", ErrNotSynced, name)
}

// retryAfter is how long to wait before a request is repeated.
func (s *state) retryAfter() time.Duration {
	if s.phase == denied && time.Since(s.since) >= time.Minute {
		return jitter(deniedPeriod)
	}
	return retryPeriod
}

// rank orders the reasons why a resource is not served by importance.
func rank(err error) int {
	switch {
	case err == nil:
		return 0
	case apierrors.IsForbidden(err):
		return 3
	case apierrors.IsNotFound(err):
		return 2
	}
	return 1
}

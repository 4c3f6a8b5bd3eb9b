// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/controller-manager/internal/requests"
	"samplecontroller.io/controller-manager/reconcile"
)

// errSwitchedOff is wrapped by the error of a write that is refused because the controller is switched off.
var errSwitchedOff = errors.New("write refused: the controller is switched off")

// SwitchOff refuses from now on the writes of the controllers with these names, and allows those of all
// others. A sync that has begun cannot write any more. It is safe for concurrent use.
func (s *Shared) SwitchOff(names sets.Set[string]) { s.off.Store(&names) }

func (s *Shared) isOff(name string) bool {
	off := s.off.Load()
	return off != nil && off.Has(name)
}

// whileOn returns a transport that refuses writes while a controller is switched off.
func (s *Shared) whileOn(name string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return switched{next, s, name} }
}

type switched struct {
	http.RoundTripper
	shared *Shared
	name   string
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (t switched) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t switched) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.shared.isOff(t.name) || !requests.IsWrite(r) {
		return t.RoundTripper.RoundTrip(r)
	}
	if r.Body != nil {
		r.Body.Close() // as a RoundTripper must
	}
	return nil, switchedOff(t.name)
}

// switchedOff returns the error of a controller that is switched off. The log already reports the switch.
func switchedOff(name string) error {
	return reconcile.Logged(fmt.Errorf("%s: %w", name, errSwitchedOff))
}

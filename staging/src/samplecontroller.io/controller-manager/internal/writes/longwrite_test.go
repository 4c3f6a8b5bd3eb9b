// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"

	"samplecontroller.io/controller-manager/internal/longwrite"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestOneLongWriteAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, answer := make(chan bool), make(chan error)
		hung := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent <- longwrite.Allowed(r.Context())
			return nil, <-answer
		})
		transport := New("a-controller", nil, nil)
		// Both clients belong to one controller.
		first, second := client(t, transport, hung, runtime.ContentTypeJSON),
			client(t, transport, hung, runtime.ContentTypeJSON)
		create := func(f *fixture) (long bool) {
			go func() { _ = f.create(reconcile.WithLongWrite(t.Context()), "x") }()
			return <-sent
		}
		a, b := &fixture{T: t, client: first}, &fixture{T: t, client: second}
		other := &fixture{T: t, client: client(t, New("b-controller", nil, nil), hung, runtime.ContentTypeJSON)}
		got := []bool{create(a), create(a), create(b), create(other)}
		for i, want := range []bool{true, false, false, true} {
			if got[i] != want {
				t.Errorf("write %d is long: %t, want %t", i, got[i], want)
			}
		}
		for range got {
			answer <- errors.New("no answer")
		}
		synctest.Wait()
		go func() { _ = a.create(t.Context(), "x") }()
		if <-sent {
			t.Error("a write without the mark is long")
		}
		if !create(b) {
			t.Error("after the first long write has failed, another is not long")
		}
		for range 2 {
			answer <- errors.New("no answer")
		}
	})
}

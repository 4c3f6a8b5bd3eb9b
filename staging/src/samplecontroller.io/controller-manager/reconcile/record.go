// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxWrites bounds what is recorded of one sync, which usually writes little.
const maxWrites = 8

// Write is one write of a sync.
type Write struct {
	// Verb is that of RBAC, and Resource one such as deployments.apps.
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Result is what became of it, empty until it is known.
	Result string `json:"result,omitempty"`
	// Took is how long it took until the answer was there, or the write was given up; 0 if
	// it was not sent, or failed for another reason.
	Took metav1.Duration `json:"took,omitzero"`
}

// String returns verb, resource and result: "patch foos/status: written".
func (w Write) String() string { return fmt.Sprintf("%s %s: %s", w.Verb, w.Resource, w.Result) }

// recorder records what one sync writes. It may be used by several goroutines.
type recorder struct {
	mutex  sync.Mutex
	writes []Write
}

type recorderKey struct{}

// WithRecorder returns a context whose writes are recorded, and a function that returns the
// first 8 so far, in the order in which they began. A loop calls it for each sync.
func WithRecorder(ctx context.Context) (recorded context.Context, written func() []Write) {
	r := &recorder{}
	return context.WithValue(ctx, recorderKey{}, r), r.list
}

func (r *recorder) list() []Write {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.writes)
}

// RecordWrite records that a write begins, if the context is that of a sync. Call the returned
// function when the write is answered or given up.
func RecordWrite(ctx context.Context, verb, resource string) (end func(result string, took time.Duration)) {
	r, ok := ctx.Value(recorderKey{}).(*recorder)
	if !ok {
		return func(string, time.Duration) {}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	i := len(r.writes)
	if i == maxWrites {
		return func(string, time.Duration) {}
	}
	r.writes = append(r.writes, Write{Verb: verb, Resource: resource})
	return func(result string, took time.Duration) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.writes[i].Result, r.writes[i].Took.Duration = result, took
	}
}

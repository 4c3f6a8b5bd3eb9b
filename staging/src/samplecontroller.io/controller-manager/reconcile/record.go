// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// maxWrites is how many writes of one sync are recorded. Usually there are few.
const maxWrites = 8

// Write is one write of a sync.
type Write struct {
	// Verb is the RBAC verb. Resource is, for example, "deployments.apps" or "foos/status".
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Result is the result of the write, such as "written", empty until it is known.
	Result string `json:"result,omitempty"`
}

// String returns the verb, resource and result, such as "patch foos/status: written".
func (w Write) String() string { return fmt.Sprintf("%s %s: %s", w.Verb, w.Resource, w.Result) }

// recorder records the writes of one sync. Methods are safe for concurrent use.
type recorder struct {
	mutex  sync.Mutex
	writes []Write
}

type recorderKey struct{}

// WithRecorder returns a context that records writes, and a function that returns the first 8
// writes so far, in the order in which they began. It may be called at any time. A loop calls
// WithRecorder for each sync, so only code that makes writes outside of a sync needs it.
func WithRecorder(ctx context.Context) (recorded context.Context, written func() []Write) {
	r := &recorder{}
	return context.WithValue(ctx, recorderKey{}, r), r.list
}

func (r *recorder) list() []Write {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.writes)
}

// RecordWrite records the begin of a write, if ctx is from [WithRecorder], and returns a function
// that records its result. Call that when the write is answered or has timed out. The clients of
// package controller do both.
func RecordWrite(ctx context.Context, verb, resource string) (end func(result string)) {
	r, ok := ctx.Value(recorderKey{}).(*recorder)
	if !ok {
		return func(string) {}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	i := len(r.writes)
	if i == maxWrites {
		return func(string) {}
	}
	r.writes = append(r.writes, Write{Verb: verb, Resource: resource})
	return func(result string) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.writes[i].Result = result
	}
}

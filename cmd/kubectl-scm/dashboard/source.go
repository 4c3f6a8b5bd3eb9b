// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"time"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// Source is what the dashboard reads. It must be safe for concurrent use.
type Source interface {
	Lead(ctx context.Context) (cluster.Lead, error)
	Handovers(ctx context.Context) ([]cluster.Handover, error)
	Pods(ctx context.Context) ([]cluster.Pod, error)
	Object(ctx context.Context, kind cluster.Kind, namespace, name string) (cluster.Object, error)
	Events(ctx context.Context, kind cluster.Kind, namespace, name string) ([]cluster.Event, error)
	Watch(ctx context.Context, kind cluster.Kind, namespace string, w cluster.Watcher) error
	// Dial connects to the leader, or to the replica that a flag selects. The connection ends with the context.
	Dial(ctx context.Context) (Replica, error)
}

// Replica is a connection to a replica.
type Replica interface {
	Report(ctx context.Context, controller string, limit int) (debug.Report, error)
	Explain(ctx context.Context, controller, namespace, name string) (debug.Explanation, error)
	Close()
}

// Cluster is the [Source] that reads a cluster.
type Cluster struct{ *cluster.Cluster }

// Dial implements Source.
func (c Cluster) Dial(ctx context.Context) (Replica, error) {
	return c.Cluster.Dial(ctx, func(string) {})
}

// reading is what a source last said.
type reading[T any] struct {
	// Value was read at the time Read, which is zero if nothing was read yet.
	Value T
	Read  time.Time
	// Interval is how often it is read.
	Interval time.Duration
	// Err is why the last try failed, nil if it did not.
	Err error
}

// succeeded keeps a value that was read at a time.
func (r *reading[T]) succeeded(value T, now time.Time) { r.Value, r.Read, r.Err = value, now, nil }

// old returns whether the value is older than three intervals.
func (r reading[T]) old(now time.Time) bool { return now.Sub(r.Read) > 3*r.Interval }

// Known returns whether something was read.
func (r reading[T]) Known() bool { return !r.Read.IsZero() }

// Fresh is how old a value is, for the template of that name.
func (r reading[T]) Fresh() freshness {
	f := freshness{Read: r.Read, Limit: 3 * r.Interval}
	if r.Err != nil {
		f.Err = short(r.Err)
	}
	return f
}

// freshness says when something was read, and why it is not read now. After Limit it is old.
type freshness struct {
	Read  time.Time
	Limit time.Duration
	Err   string
}

// short returns the text of an error in one line.
func short(err error) string { return truncated(debug.Short(err.Error()), 400) }

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"samplecontroller.io/controller-manager/examples/ops/api"
)

// env is an API server in memory, and what a controller wrote to it.
type env struct {
	*testing.T
	client.Client // of the controller
	user          client.Client
	events        *events.FakeRecorder
	writes        []string
}

func newEnv(t *testing.T) *env {
	e := &env{T: t, events: events.NewFakeRecorder(100)}
	api := fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&api.Backup{}, &batchv1.Job{}).
		WithIndex(&api.Backup{}, sourceIndex, sourceOf).Build()
	e.user = api
	e.Client = interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			e.writes = append(e.writes, "create "+o.GetName())
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			e.writes = append(e.writes, "update "+o.GetName())
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			e.writes = append(e.writes, "delete "+o.GetName())
			return c.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			e.writes = append(e.writes, "update "+sub+" of "+o.GetName())
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	return e
}

// must fails the test if a request of the user fails.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// reconcile reconciles an object twice, and expects these writes of the controller.
func (e *env) reconcile(r reconcile.Reconciler, namespace, name, when string, want ...string) (result ctrl.Result) {
	e.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
	for range 2 {
		var err error
		result, err = r.Reconcile(e.Context(), request)
		e.must(err)
	}
	if !slices.Equal(e.writes, want) {
		e.Errorf("%s: writes %q, want %q", when, e.writes, want)
	}
	e.writes = nil
	return result
}

// expectEvents expects the Events since the last call.
func (e *env) expectEvents(want ...string) {
	e.Helper()
	var got []string
	for len(e.events.Events) > 0 {
		got = append(got, <-e.events.Events)
	}
	if !slices.Equal(got, want) {
		e.Errorf("Events %q, want %q", got, want)
	}
}

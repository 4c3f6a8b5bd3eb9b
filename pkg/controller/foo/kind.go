// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplev1alpha1apply "samplecontroller.io/client-go/applyconfiguration/samplecontroller/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// kind implements [workload.Kind].
type kind struct {
	client samplev1alpha1client.FoosGetter
}

func (kind) GroupVersionKind() schema.GroupVersionKind { return kinds.Foo }

func (kind) StatusResource() schema.GroupResource { return samplev1alpha1.Resource("foos/status") }

func (kind) Owner(foo *samplev1alpha1.Foo) workload.Owner { return kinds.FooOwner(foo) }

func (k kind) List(ctx context.Context, namespace string, options metav1.ListOptions) ([]*samplev1alpha1.Foo, string, error) {
	list, err := k.client.Foos(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	var foos []*samplev1alpha1.Foo
	for i := range list.Items {
		foos = append(foos, &list.Items[i])
	}
	return foos, list.ResourceVersion, nil
}

func (kind) Status(foo *samplev1alpha1.Foo) workload.Status {
	return workload.Status{
		ObservedGeneration: foo.Status.ObservedGeneration,
		Replicas:           foo.Status.Replicas,
		ReadyReplicas:      foo.Status.ReadyReplicas,
		AvailableReplicas:  foo.Status.AvailableReplicas,
		Selector:           foo.Status.Selector,
		UnavailableSince:   foo.Status.UnavailableSince,
		Conditions:         workload.OwnConditions(foo.Status.Conditions),
	}
}

func (kind) Conditions(foo *samplev1alpha1.Foo) (int64, []metav1.Condition) {
	return foo.Status.ObservedGeneration, foo.Status.Conditions
}

func (k kind) SameStatus(a, b *samplev1alpha1.Foo) bool {
	return k.Status(a).Equal(k.Status(b))
}

func (k kind) StatusWrite(foo *samplev1alpha1.Foo, current, wanted workload.Status) (workload.StatusWrite[*samplev1alpha1.Foo], error) {
	if current.Equal(wanted) {
		return nil, nil
	}
	return func(ctx context.Context) (*samplev1alpha1.Foo, error) {
		client := k.client.Foos(foo.Namespace)
		applied, err := client.ApplyStatus(ctx, applyStatus(foo, wanted), metav1.ApplyOptions{FieldManager: ControllerName, Force: true})
		if err != nil {
			return nil, err
		}
		stray := workload.Stray(applied.Status.Conditions, applied.Status.UnavailableSince, wanted)
		return workload.RemoveStray(ctx, ControllerName, applied, client.Patch, stray...)
	}, nil
}

// applyStatus returns the apply configuration of the status. It carries the resourceVersion
// of the Foo, so that a late apply cannot reach a re-created Foo of the same name.
func applyStatus(foo *samplev1alpha1.Foo, status workload.Status) *samplev1alpha1apply.FooApplyConfiguration {
	apply := samplev1alpha1apply.FooStatus().
		WithObservedGeneration(status.ObservedGeneration).
		WithReplicas(status.Replicas).
		WithReadyReplicas(status.ReadyReplicas).
		WithAvailableReplicas(status.AvailableReplicas).
		WithSelector(status.Selector).
		WithConditions(workload.ApplyConditions(status.Conditions)...)
	apply.UnavailableSince = status.UnavailableSince
	return samplev1alpha1apply.Foo(foo.Name, foo.Namespace).
		WithResourceVersion(foo.ResourceVersion).
		WithStatus(apply)
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	icecreamv1alpha1apply "samplecontroller.io/client-go/applyconfiguration/icecream/v1alpha1"
	samplev1alpha1apply "samplecontroller.io/client-go/applyconfiguration/samplecontroller/v1alpha1"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// kind reads and writes the summary in the objects of one kind.
type kind[T workload.Object] struct {
	groupVersionKind schema.GroupVersionKind
	resource         string
	owner            func(T) workload.Owner
	summary          func(T) *workloadv1alpha1.PodSummary
	// apply writes the summary, or gives it up if it is nil. The write is bound to the
	// resourceVersion of the given object.
	apply func(context.Context, T, *workloadv1alpha1.PodSummary) (T, error)
	// exists reports whether the API server has the object, with the same UID.
	exists func(context.Context, T) (bool, error)
	// patch returns the client's patch in the namespace of an object.
	patch func(T) workload.Patcher[T]
}

// applyOptions force the apply, because nobody else owns the summary.
var applyOptions = metav1.ApplyOptions{FieldManager: ControllerName, Force: true}

// named selects the object of this name. It is for a list of one object, because the list
// permission is needed anyway.
func named(o metav1.Object) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.GetName()).String()}
}

// Foos makes the controller write the Pod summaries of Foos. The client writes them. All
// controllers that write to Foos share the store.
func Foos(foos cache.TypedSharedIndexInformer[*samplev1alpha1.Foo], client samplev1alpha1client.FoosGetter, consistency *reconcile.ConsistencyStore) KindOptions {
	return newLoop(kind[*samplev1alpha1.Foo]{
		groupVersionKind: kinds.Foo,
		resource:         "foos",
		owner:            kinds.FooOwner,
		summary:          func(foo *samplev1alpha1.Foo) *workloadv1alpha1.PodSummary { return foo.Status.Pods },
		apply: func(ctx context.Context, foo *samplev1alpha1.Foo, pods *workloadv1alpha1.PodSummary) (*samplev1alpha1.Foo, error) {
			status := samplev1alpha1apply.FooStatus()
			status.Pods = pods
			apply := samplev1alpha1apply.Foo(foo.Name, foo.Namespace).WithResourceVersion(foo.ResourceVersion).WithStatus(status)
			return client.Foos(foo.Namespace).ApplyStatus(ctx, apply, applyOptions)
		},
		exists: func(ctx context.Context, foo *samplev1alpha1.Foo) (bool, error) {
			list, err := client.Foos(foo.Namespace).List(ctx, named(foo))
			return err == nil && slices.ContainsFunc(list.Items, func(now samplev1alpha1.Foo) bool { return now.UID == foo.UID }), err
		},
		patch: func(foo *samplev1alpha1.Foo) workload.Patcher[*samplev1alpha1.Foo] {
			return client.Foos(foo.Namespace).Patch
		},
	}, foos, consistency)
}

// Icecreams is like [Foos] for Icecreams.
func Icecreams(icecreams cache.TypedSharedIndexInformer[*icecreamv1alpha1.Icecream], client icecreamv1alpha1client.IcecreamsGetter, consistency *reconcile.ConsistencyStore) KindOptions {
	return newLoop(kind[*icecreamv1alpha1.Icecream]{
		groupVersionKind: kinds.Icecream,
		resource:         "icecreams",
		owner:            kinds.IcecreamOwner,
		summary:          func(icecream *icecreamv1alpha1.Icecream) *workloadv1alpha1.PodSummary { return icecream.Status.Pods },
		apply: func(ctx context.Context, icecream *icecreamv1alpha1.Icecream, pods *workloadv1alpha1.PodSummary) (*icecreamv1alpha1.Icecream, error) {
			status := icecreamv1alpha1apply.IcecreamStatus()
			status.Pods = pods
			apply := icecreamv1alpha1apply.Icecream(icecream.Name, icecream.Namespace).WithResourceVersion(icecream.ResourceVersion).WithStatus(status)
			return client.Icecreams(icecream.Namespace).ApplyStatus(ctx, apply, applyOptions)
		},
		exists: func(ctx context.Context, icecream *icecreamv1alpha1.Icecream) (bool, error) {
			list, err := client.Icecreams(icecream.Namespace).List(ctx, named(icecream))
			return err == nil && slices.ContainsFunc(list.Items, func(now icecreamv1alpha1.Icecream) bool { return now.UID == icecream.UID }), err
		},
		patch: func(icecream *icecreamv1alpha1.Icecream) workload.Patcher[*icecreamv1alpha1.Icecream] {
			return client.Icecreams(icecream.Namespace).Patch
		},
	}, icecreams, consistency)
}

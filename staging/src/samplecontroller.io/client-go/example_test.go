// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	applysamplev1alpha1 "samplecontroller.io/client-go/applyconfiguration/samplecontroller/v1alpha1"
	applyworkloadv1alpha1 "samplecontroller.io/client-go/applyconfiguration/workload/v1alpha1"
	"samplecontroller.io/client-go/clientset/versioned/fake"
	"samplecontroller.io/client-go/informers/externalversions"
)

// A typed informer gives its handlers Foos, also when one is deleted, and its
// lister answers from memory. With a real cluster, the client comes from
// versioned.NewForConfig.
func Example_informer() {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset(&samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example-foo"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "example-foo"},
	})
	factory := externalversions.NewSharedInformerFactory(client, 0)
	defer factory.Shutdown()
	defer cancel()

	foos := factory.Samplecontroller().V1alpha1().Foos()
	handled, err := foos.TypedInformer().AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*samplev1alpha1.Foo]{
		AddFunc: func(foo *samplev1alpha1.Foo) {
			fmt.Println("added:", foo.Name, "keeps", foo.Spec.DeploymentName)
		},
	})
	if err != nil {
		panic(err)
	}
	factory.StartWithContext(ctx)
	cache.WaitFor(ctx, "the first Foos", handled.HasSyncedChecker())

	foo, err := foos.Lister().Foos("default").Get("example-foo")
	if err != nil {
		panic(err)
	}
	fmt.Println("listed:", foo.Name)

	// Output:
	// added: example-foo keeps example-foo
	// listed: example-foo
}

// Several controllers can each apply their own part of a status. The fake
// clientset keeps account of the fields' managers as an API server does.
func Example_applyStatus() {
	ctx := context.Background()
	foos := fake.NewClientset(&samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example-foo"},
	}).SamplecontrollerV1alpha1().Foos("default")

	for manager, status := range map[string]*applysamplev1alpha1.FooStatusApplyConfiguration{
		"foo-controller":               applysamplev1alpha1.FooStatus().WithObservedGeneration(1).WithReplicas(2),
		"status-aggregator-controller": applysamplev1alpha1.FooStatus().WithPods(applyworkloadv1alpha1.PodSummary().WithTotal(2)),
	} {
		foo := applysamplev1alpha1.Foo("example-foo", "default").WithStatus(status)
		if _, err := foos.ApplyStatus(ctx, foo, metav1.ApplyOptions{FieldManager: manager}); err != nil {
			panic(err)
		}
	}

	foo, err := foos.Get(ctx, "example-foo", metav1.GetOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println("replicas:", foo.Status.Replicas, "pods:", foo.Status.Pods.Total)

	// Output:
	// replicas: 2 pods: 2
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// CallsBy counts the calls of a controller in a namespace.
func CallsBy(t *testing.T, controller, ns string) map[string]int {
	t.Helper()
	events := Audit(t, cluster.ByUserAgent(controller), cluster.InNamespace(ns))
	calls := map[string]int{}
	for _, event := range events {
		calls[cluster.Call(event)]++
	}
	return calls
}

// APIVersion is the group and version of the kind.
func (k Kind) APIVersion() string { return k.GroupVersion().String() }

// PatchStatus is the call that writes a status, in the format of [cluster.Call].
func (k Kind) PatchStatus() string { return "patch " + k.Resource + "/status" }

// OneWorker is a flag that makes the daemon sync objects in the order of their creation.
func (k Kind) OneWorker() string {
	return "--concurrent-" + strings.TrimSuffix(k.Controller, "-controller") + "-syncs=1"
}

// Annotate enqueues an object by an irrelevant change.
func (k Kind) Annotate(t *testing.T, ns, name string) {
	t.Helper()
	if err := k.Touch(t.Context(), ns, name, "true"); err != nil {
		t.Fatal(err)
	}
}

// WaitCondition waits until a condition of the object is True for the given reason.
func (k Kind) WaitCondition(t *testing.T, ns, name, conditionType, reason string) *samplev1alpha1.Foo {
	t.Helper()
	var object *samplev1alpha1.Foo
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s is %s for %s", k.Kind, name, conditionType, reason), func(ctx context.Context) (err error) {
		if object, err = k.Get(ctx, ns, name); err != nil {
			return err
		}
		c := meta.FindStatusCondition(object.Status.Conditions, conditionType)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || c.ObservedGeneration != object.Generation {
			return fmt.Errorf("conditions %+v", object.Status.Conditions)
		}
		return nil
	})
	return object
}

// WaitReplicas waits until the object's Deployment has this spec.replicas.
func (k Kind) WaitReplicas(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("Deployment %s has %d replicas of its %s", name, replicas, k.Kind), func(ctx context.Context) error {
		d, err := Kube().AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(d); owner == nil || owner.Kind != k.Kind {
			return errors.New("it is not owned by the object")
		}
		if *d.Spec.Replicas != replicas {
			return fmt.Errorf("got %d", *d.Spec.Replicas)
		}
		return nil
	})
}

// Calls counts the calls of the kind's controller in a namespace.
func (k Kind) Calls(t *testing.T, ns string) map[string]int {
	t.Helper()
	return CallsBy(t, k.Controller, ns)
}

// BeReady writes the Deployment's status as kube-controller-manager does once all Pods are
// available.
func BeReady(t *testing.T, ns, name string) {
	t.Helper()
	d := Deployment(t, ns, name)
	n := *d.Spec.Replicas
	// Counts of zero are written explicitly, which the Go type would omit.
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`, d.Generation, n, n, n, n)
	if _, err := Kube().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, status,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// UninstallCRD deletes the CRD with its objects.
func (k Kind) UninstallCRD(t *testing.T) {
	t.Helper()
	if err := clustertest.DeleteCRD(context.WithoutCancel(t.Context()), Cluster(), k.CRD()); err != nil {
		t.Fatal(err)
	}
}

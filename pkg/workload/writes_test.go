// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// TestFailedStatusWriteRecordsNoEvent fails the first status that says Ready. Its Event comes with the status.
func TestFailedStatusWriteRecordsNoEvent(t *testing.T) {
	foos := schema.GroupResource{Group: samplev1alpha1.SchemeGroupVersion.Group, Resource: "foos"}
	for name, err := range map[string]error{
		"conflict":        apierrors.NewConflict(foos, name, errors.New("changed")),
		"API unavailable": apierrors.NewServiceUnavailable("down"),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, e env) {
				e.Create(example())
				e.pass(time.Minute)
				e.reject(patchStatus, "", err)
				e.rollOut(ready)
				time.Sleep(5 * time.Second)
				e.wantEvents()
				e.BeforeWrite(nil)
				e.pass(time.Minute)
				e.wantEvents(synced)
			})
		})
	}
}

// TestRefusedStatusIsReportedOnce denies a status. The Event comes from the library.
func TestRefusedStatusIsReportedOnce(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.reject(patchStatus, "", denial("no"))
		e.rollOut(available(0))
		e.pass(10 * time.Minute)
		e.wantEvents(`Warning WriteDenied writing the status of Foo default/example was denied: admission webhook "w" denied the request: no`)
		e.BeforeWrite(nil)
		e.pass(time.Minute)
		if e.condition("Ready").Status != "False" {
			t.Error("the status was not written")
		}
		e.wantEvents()
	})
}

// undecodable returns a Foo that a CRD without a schema accepts.
func undecodable(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": samplev1alpha1.SchemeGroupVersion.String(), "kind": "Foo",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"deploymentName": []any{deploymentName}},
	}}
}

// TestSyncIgnoresUndecodableObject stores an object before its CRD had a schema. Its Deployment drifts.
func TestSyncIgnoresUndecodableObject(t *testing.T) {
	runWithoutCRDs(t, func(t *testing.T, e env) {
		e.Create(example(func(f *samplev1alpha1.Foo) { f.Status.ObservedGeneration = -1 }))
		e.pass(time.Minute)
		e.forget()
		e.Create(undecodable("broken"))
		e.pass(time.Minute)
		e.wantWrites()
		e.wantEvents("Warning Undecodable Skipping object: failed to decode: spec.deploymentName: array where string is expected." +
			" Fix it (for example, with kubectl edit) or delete it.")
		e.rollOut(ready) // which it does not name
		e.pass(time.Minute)
		e.wantWrites(patchStatus)
		e.Delete(undecodable("broken"))
		e.pass(time.Minute)
		e.wantWrites()
		e.wantEvents(synced)
	})
}

// TestUndecodableObjectInDeletionIsNotReported deletes an object that another finalizer holds. Nobody needs to
// correct it.
func TestUndecodableObjectInDeletionIsNotReported(t *testing.T) {
	runWithoutCRDs(t, func(t *testing.T, e env) {
		broken := undecodable("broken")
		broken.SetFinalizers([]string{"example.com/hold"})
		e.Create(broken)
		e.pass(time.Second)
		if len(e.Events()) != 1 {
			t.Error("the object is not reported before its deletion")
		}
		e.Delete(undecodable("broken"))
		e.pass(time.Minute)
		e.wantWrites()
		e.wantEvents()
	})
}

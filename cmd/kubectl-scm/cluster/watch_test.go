// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// watchFoos watches the Foos of a fake API server until the end of the test. The channel gets a line for each call.
func watchFoos(t *testing.T, client *fake.FakeDynamicClient) <-chan string {
	t.Helper()
	told := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- (&Cluster{objects: client}).Watch(ctx, Kinds[0], "", Watcher{
			Changed:  func(o Object) { told <- "changed " + o.Key() + " " + o.Reason },
			Deleted:  func(o Object) { told <- "deleted " + o.Key() },
			Complete: func() { told <- "complete" },
			Heard:    func() {},
			Failed:   func(err error) { told <- "failed " + err.Error() },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return told
}

// wantTold checks the next call.
func wantTold(t *testing.T, told <-chan string, want string) {
	t.Helper()
	select {
	case got := <-told:
		if !strings.HasPrefix(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nothing in a minute, want %q", want)
	}
}

func newFoo(reason string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"metadata": map[string]any{"namespace": "ns", "name": "a"},
		"spec":     map[string]any{"replicas": int64(1)},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": reason}}},
	}}
}

func newDynamic(objects ...runtime.Object) *fake.FakeDynamicClient {
	lists := map[schema.GroupVersionResource]string{Kinds[0].Resource: "FooList"}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
}

func TestWatch(t *testing.T) {
	client := newDynamic(newFoo("First"))
	told := watchFoos(t, client)
	wantTold(t, told, "changed ns/a First")
	wantTold(t, told, "complete")
	foos := client.Resource(Kinds[0].Resource).Namespace("ns")
	if _, err := foos.Update(t.Context(), newFoo("Second"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantTold(t, told, "changed ns/a Second")
	if err := foos.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantTold(t, told, "deleted ns/a")
}

func TestWatchSaysWhyItFails(t *testing.T) {
	client := newDynamic()
	client.PrependReactor("list", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New(`foos.samplecontroller.k8s.io is forbidden: User "jane" cannot list resource "foos" in API group "samplecontroller.k8s.io" at the cluster scope`)
	})
	wantTold(t, watchFoos(t, client), "failed 403: may not list foos in all namespaces")
}

// TestTrimKeepsWhatIsShown checks that an object shows the same after the transform, and that its spec is gone.
func TestTrimKeepsWhatIsShown(t *testing.T) {
	foo := newFoo("Available")
	foo.SetGeneration(3)
	foo.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	trimmed, err := trim(foo)
	if err != nil {
		t.Fatal(err)
	}
	u := trimmed.(*unstructured.Unstructured)
	if got, want := NewObject(Kinds[0], u), NewObject(Kinds[0], foo); got != want {
		t.Errorf("trimmed it is %+v, want %+v", got, want)
	}
	if _, found := u.Object["spec"]; found {
		t.Error("the spec is still there")
	}
}

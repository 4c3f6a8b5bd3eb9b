// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// aggregator is the controller that writes the Pod summaries.
const aggregator = "status-aggregator-controller"

// kind is a kind whose objects manage one Deployment each.
type kind struct{ clustertest.Objects }

// current has the client of the cluster that tests use now: [ownCluster] changes it.
type current struct{}

func (current) Dynamic() dynamic.Interface { return shared.Dynamic() }

var (
	foos      = kind{clustertest.Foos(current{})}
	icecreams = kind{clustertest.Icecreams(current{})}
	kinds     = []kind{foos, icecreams}
)

// overKinds runs a test for each kind.
func overKinds(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.Kind, func(t *testing.T) { test(t, k) })
	}
}

func (k kind) apiVersion() string { return k.GroupVersion().String() }

// client returns a REST client, which neither validates nor converts objects.
func (k kind) client() restclient.Interface {
	if k == icecreams {
		return shared.Sample().IcecreamV1alpha1().RESTClient()
	}
	return shared.Sample().SamplecontrollerV1alpha1().RESTClient()
}

// patchStatus is the call that writes a status, in the format of [cluster.Call].
func (k kind) patchStatus() string { return "patch " + k.Resource + "/status" }

// oneWorker is a flag that makes the daemon sync objects in the order of their creation.
func (k kind) oneWorker() string {
	return "--concurrent-" + strings.TrimSuffix(k.Controller, "-controller") + "-syncs=1"
}

// count returns the number of objects of the kind.
func (k kind) count(t *testing.T) int {
	t.Helper()
	all, err := k.In(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}

// annotate enqueues an object by an irrelevant change.
func (k kind) annotate(t *testing.T, ns, name string) {
	t.Helper()
	if err := k.Touch(t.Context(), ns, name, "true"); err != nil {
		t.Fatal(err)
	}
}

// waitCondition waits until a condition of the object is True for the given reason.
func (k kind) waitCondition(t *testing.T, ns, name, conditionType, reason string) *samplev1alpha1.Foo {
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

// waitReplicas waits until the object's Deployment has this spec.replicas.
func (k kind) waitReplicas(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("Deployment %s has %d replicas of its %s", name, replicas, k.Kind), func(ctx context.Context) error {
		d, err := shared.Kube().AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
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

// wantCalls compares the calls of the kind's controller in a namespace.
func (k kind) wantCalls(t *testing.T, ns string, want ...string) {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns))
	var got []string
	for _, event := range events {
		got = append(got, cluster.Call(event))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected calls of %s (-want +got):\n%s", k.Controller, diff)
	}
}

// catchUp makes the kind's controller write in another namespace: its first write in a term
// confirms that its cache is not stale.
func (k kind) catchUp(t *testing.T) {
	t.Helper()
	ns := newNamespace(t)
	k.Create(t, ns, "first", 1)
	k.waitCondition(t, ns, "first", "Reconciling", "Progressing")
}

// calls counts the calls of the kind's controller in a namespace.
func (k kind) calls(t *testing.T, ns string) map[string]int {
	t.Helper()
	return callsBy(t, k.Controller, ns)
}

// wantCounts compares the numbers of calls of the kind's controller in a namespace.
func (k kind) wantCounts(t *testing.T, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, k.calls(t, ns)); diff != "" {
		t.Errorf("unexpected calls of %s (-want +got):\n%s", k.Controller, diff)
	}
}

// callsBy counts the calls of a controller in a namespace.
func callsBy(t *testing.T, controller, ns string) map[string]int {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(controller), cluster.InNamespace(ns))
	calls := map[string]int{}
	for _, event := range events {
		calls[cluster.Call(event)]++
	}
	return calls
}

// wantEvents compares types and reasons of the Events about the objects of a namespace.
// None may have happened twice.
func (k kind) wantEvents(t *testing.T, ns string, want ...string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("the Events are %q", want), func(ctx context.Context) error {
		events, err := shared.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind})
		if err != nil {
			return err
		}
		var got []string
		for _, event := range events.Items {
			if event.Count != 1 {
				t.Fatalf("Event %s %q happened %d times", event.Reason, event.Message, event.Count)
			}
			got = append(got, event.Type+" "+event.Reason)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}

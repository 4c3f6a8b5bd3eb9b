// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// aggregator is the controller that writes what Pods say.
const aggregator = "status-aggregator-controller"

// kind is one whose objects keep a Deployment. All that the kinds have in common is
// in a Foo, so objects of each are read and written as one.
type kind struct {
	name, resource, group string
	app                   string // the label of its Pods
	controller            string
	client                func() restclient.Interface
}

var (
	foos = kind{
		name: "Foo", resource: "foos", group: "samplecontroller.k8s.io",
		app:        "nginx",
		controller: "foo-controller",
		client:     func() restclient.Interface { return sample.SamplecontrollerV1alpha1().RESTClient() },
	}
	icecreams = kind{
		name: "Icecream", resource: "icecreams", group: "controller.nicoleh.io",
		app:        "icecream",
		controller: "icecream-controller",
		client:     func() restclient.Interface { return sample.IcecreamV1alpha1().RESTClient() },
	}
	kinds = []kind{foos, icecreams}
)

// overKinds runs a test for each kind.
func overKinds(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// arg is the kind in an argument of kubectl.
func (k kind) arg() string { return strings.ToLower(k.name) }

func (k kind) apiVersion() string { return k.group + "/v1alpha1" }

func (k kind) crd() string { return k.resource + "." + k.group }

// patchStatus is the call by which a status is written, as [cluster.Call] has it.
func (k kind) patchStatus() string { return "patch " + k.resource + "/status" }

// oneWorker is the flag with which an object that is made later is served later.
func (k kind) oneWorker() string {
	return "--concurrent-" + strings.TrimSuffix(k.controller, "-controller") + "-syncs=1"
}

func (k kind) new(name string, replicas int32) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		TypeMeta:   metav1.TypeMeta{APIVersion: k.apiVersion(), Kind: k.name},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}
}

func (k kind) create(t *testing.T, ns, name string, replicas int32) *samplev1alpha1.Foo {
	t.Helper()
	return k.store(t, ns, k.new(name, replicas))
}

func (k kind) store(t *testing.T, ns string, object *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	t.Helper()
	created, err := k.tryStore(t.Context(), ns, object)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (k kind) tryStore(ctx context.Context, ns string, object *samplev1alpha1.Foo) (*samplev1alpha1.Foo, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return decode(k.client().Post().Namespace(ns).Resource(k.resource).SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
}

func (k kind) get(ctx context.Context, ns, name string) (*samplev1alpha1.Foo, error) {
	return decode(k.client().Get().Namespace(ns).Resource(k.resource).Name(name).Do(ctx))
}

// mustGet is like get where the object is known to be there.
func (k kind) mustGet(t *testing.T, ns, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := k.get(t.Context(), ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// count returns how many objects of the kind there are.
func (k kind) count(t *testing.T) int {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	body, err := k.client().Get().Resource(k.resource).Do(t.Context()).Raw()
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// patch patches an object without decoding the answer.
func (k kind) patch(ctx context.Context, ns, name, patch string, subresources ...string) error {
	return k.client().Patch(types.MergePatchType).Namespace(ns).Resource(k.resource).Name(name).SubResource(subresources...).Body([]byte(patch)).Do(ctx).Error()
}

func decode(result restclient.Result) (*samplev1alpha1.Foo, error) {
	body, err := result.Raw()
	if err != nil {
		return nil, result.Error() // which knows the reason
	}
	object := &samplev1alpha1.Foo{}
	return object, json.Unmarshal(body, object)
}

// annotate wakes the controllers with a change that asks for nothing.
func (k kind) annotate(t *testing.T, ns, name string) {
	t.Helper()
	if err := k.patch(t.Context(), ns, name, `{"metadata":{"annotations":{"touched":"true"}}}`); err != nil {
		t.Fatal(err)
	}
}

// waitCondition waits until a condition of the object is True for the given reason.
func (k kind) waitCondition(t *testing.T, ns, name, conditionType, reason string) *samplev1alpha1.Foo {
	t.Helper()
	var object *samplev1alpha1.Foo
	eventually(t, fmt.Sprintf("%s %s is %s for %s", k.name, name, conditionType, reason), func(ctx context.Context) (err error) {
		if object, err = k.get(ctx, ns, name); err != nil {
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

// waitReplicas waits until the object's Deployment asks for so many replicas.
func (k kind) waitReplicas(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("Deployment %s asks for %d replicas of its %s", name, replicas, k.name), func(ctx context.Context) error {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(d); owner == nil || owner.Kind != k.name {
			return errors.New("it is not owned by one")
		}
		if *d.Spec.Replicas != replicas {
			return fmt.Errorf("it asks for %d", *d.Spec.Replicas)
		}
		return nil
	})
}

// wantCalls compares the calls that the kind's controller has made in a namespace.
func (k kind) wantCalls(t *testing.T, ns string, want ...string) {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent(k.controller), cluster.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, event := range events {
		got = append(got, cluster.Call(event))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected calls of %s (-want +got):\n%s", k.controller, diff)
	}
}

// calls counts the calls that the kind's controller has made in a namespace.
func (k kind) calls(t *testing.T, ns string) map[string]int {
	t.Helper()
	return callsBy(t, k.controller, ns)
}

// wantCounts compares how many calls the kind's controller has made in a namespace.
func (k kind) wantCounts(t *testing.T, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, k.calls(t, ns)); diff != "" {
		t.Errorf("unexpected calls of %s (-want +got):\n%s", k.controller, diff)
	}
}

// callsBy counts the calls that a controller has made in a namespace.
func callsBy(t *testing.T, controller, ns string) map[string]int {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent(controller), cluster.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, event := range events {
		calls[cluster.Call(event)]++
	}
	return calls
}

// wantEvents compares types and reasons of the Events about the objects of a
// namespace, of which none may have happened twice.
func (k kind) wantEvents(t *testing.T, ns string, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the Events are %q", want), func(ctx context.Context) error {
		events, err := kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.name})
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
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
}

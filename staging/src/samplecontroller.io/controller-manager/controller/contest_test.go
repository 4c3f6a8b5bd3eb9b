// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	testingclock "k8s.io/utils/clock/testing"
)

func TestFinishedContestsAreForgotten(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	c := contests{utilcache.NewExpiringWithClock(clock)}
	for i := range 100 { // one after the other, each once
		of := histories{fmt.Sprint("/", i): {written: clock.Now()}}
		c.keep(types.UID(fmt.Sprint(i)), of, clock.Now())
		again := histories{fmt.Sprint("/", i): {written: clock.Now()}, "/old": {written: clock.Now().Add(-contestWindow)}}
		c.keep("same", again, clock.Now())
		clock.Step(contestWindow / 2)
	}
	if objects, fields := c.byObject.Len(), len(c.of("same")); objects > 3 || fields != 1 {
		t.Errorf("%d objects and %d fields are remembered, want 3 and 1 at most", objects, fields)
	}
}

func TestFieldManagerOfRival(t *testing.T) {
	const document = `{"spec":{"replicas":9,"selector":{"app":"a"},"ports":[{"port":53,"protocol":"UDP"},{"port":53}],
		"containers":[{"name":"log"},{"name":"a/b","image":"x"}],"finalizers":["one","two"]},"metadata":{"labels":{"a/b":"c"}}}`
	managed := []metav1.ManagedFieldsEntry{
		entry("ours", 9, `{"f:spec":{"f:replicas":{}}}`),
		entry("autoscaler", 2, `{"f:spec":{"f:replicas":{}}}`),
		entry("kubectl", 1, `{"f:spec":{"f:replicas":{},"f:selector":{}}}`),
		entry("updater", 3, `{"f:spec":{"f:containers":{"k:{\"name\":\"a/b\"}":{".":{},"f:image":{}}}}}`),
		entry("service", 4, `{"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{"f:nodePort":{}}}}}`),
		entry("finalizer", 5, `{"f:spec":{"f:finalizers":{"v:\"two\"":{}}}}`),
		entry("labeller", 6, `{"f:metadata":{"f:labels":{"f:a/b":{}}}}`),
		entry("broken", 7, `{"f:spec"`),
		{Manager: "empty"},
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"/spec/replicas":           "autoscaler",
		"/spec/selector/app":       "kubectl", // it is managed as a whole
		"/spec/containers/1/image": "updater",
		"/spec/containers/0/image": "",
		"/spec/containers/7/image": "",
		"/spec/containers":         "updater", // of an element
		"/spec/ports/0/nodePort":   "service",
		"/spec/finalizers/1":       "finalizer",
		"/spec/finalizers/0":       "",
		"/metadata/labels/a~1b":    "labeller",
		"/spec/paused":             "",
	} {
		if got := managerOf(managed, "ours", func() map[string]any { return object }, field); got != want {
			t.Errorf("%s is set by %q, want %q", field, got, want)
		}
	}
}

func entry(manager string, second int64, fields string) metav1.ManagedFieldsEntry {
	at := metav1.Unix(second, 0)
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestSpecIsDone(t *testing.T) {
	for name, test := range map[string]struct {
		object metav1.Object
		want   bool
	}{
		"observed": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2}}, true},
		"not yet observed": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 1}}, false},
		"status without the field": {&corev1.Service{}, false},
		"no status":                {&corev1.ConfigMap{}, false},
		"pointer":                  {&withPointer{Status: &appsv1.DeploymentStatus{}}, false},
		"embedded pointer":         {&withEmbedded{}, false},
	} {
		if got := isDone(test.object); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

type withPointer struct {
	metav1.ObjectMeta
	Status *appsv1.DeploymentStatus
}

type withEmbedded struct {
	metav1.ObjectMeta
	Status struct{ *appsv1.DeploymentStatus }
}

// TestResultOfChange patches a field, and compares it with what the API server has stored.
func TestResultOfChange(t *testing.T) {
	for name, test := range map[string]struct {
		from, to, patched     string
		isStored, isUnchanged bool
	}{
		"kept":                    {`{"a":1}`, `{"a":2}`, `{"a":2}`, false, false},
		"another value":           {`{"a":1}`, `{"a":2}`, `{"a":3}`, true, false},
		"the old value":           {`{"a":1}`, `{"a":2}`, `{"a":1}`, true, false},
		"kept, with defaults":     {`{}`, `{"a":[{"p":1}]}`, `{"a":[{"p":1,"q":2}]}`, false, false},
		"default for what is not": {`{"a":1}`, `{}`, `{"a":1}`, false, true},
		"removed":                 {`{"a":1}`, `{}`, `{}`, false, false},
		"dropped":                 {`{}`, `{"a":1}`, `{}`, false, false},
		"empty list":              {`{}`, `{"a":[]}`, `{"a":null}`, false, true},
		"another length":          {`{"a":[1]}`, `{"a":[1,2]}`, `{"a":[1]}`, true, false},
		"elements put back":       {`{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, false, true},
	} {
		d := differ{}
		d.members("", decoded(t, test.from), decoded(t, test.to))
		changes := fieldChanges(d.ops)
		if len(changes) != 1 {
			t.Fatalf("%s: %d changes, want 1", name, len(changes))
		}
		stored, unchanged := changes[0].result(decoded(t, test.patched))
		if (stored != 0) != test.isStored || unchanged != test.isUnchanged {
			t.Errorf("%s: stored %t, unchanged %t, want %t and %t", name, stored != 0, unchanged, test.isStored, test.isUnchanged)
		}
	}
}

// TestChangeOfListIsWhatIsWanted sets a list to the same elements, whatever another writer has added.
func TestChangeOfListIsWhatIsWanted(t *testing.T) {
	var values []uint64
	for _, added := range []string{"x", "y"} {
		d := differ{}
		d.members("", decoded(t, `{"l":[{"name":"a"},{"name":"`+added+`"}]}`), decoded(t, `{"l":[{"name":"a"}]}`))
		values = append(values, fieldChanges(d.ops)[0].value)
	}
	if values[0] != values[1] {
		t.Error("the two changes differ, want the same")
	}
}

// TestPatchWithoutHeldFields leaves fields out of a patch.
func TestPatchWithoutHeldFields(t *testing.T) {
	const from = `{"a":1,"l":[{"name":"x","v":1,"w":1},{"name":"y","v":1}]}`
	for name, test := range map[string]struct {
		to, held, want string
	}{
		"only field":      {`{"a":2,"l":[{"name":"x","v":1,"w":1},{"name":"y","v":1}]}`, "/a", ""},
		"of an element":   {`{"a":2,"l":[{"name":"x","v":2,"w":1},{"name":"y","v":2}]}`, "/l/0/v", `add /a; test /l/1/name; add /l/1/v`},
		"another of it":   {`{"a":1,"l":[{"name":"x","v":2,"w":2},{"name":"y","v":1}]}`, "/l/0/v", `test /l/0/name; add /l/0/w`},
		"changed list":    {`{"a":2,"l":[{"name":"y","v":2},{"name":"z"}]}`, "/l", `add /a`},
		"not of the list": {`{"a":2,"l":[{"name":"y","v":1}]}`, "/a", `test /l/0/name; remove /l/0`},
	} {
		d := differ{}
		d.members("", decoded(t, from), decoded(t, test.to))
		got := ""
		for _, o := range without(d.ops, []contest{{field: test.held, isHeld: true}, {field: "/l/1/v"}}) {
			if got != "" {
				got += "; "
			}
			got += o.Op + " " + o.Path
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func decoded(t *testing.T, text string) (document map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document
}

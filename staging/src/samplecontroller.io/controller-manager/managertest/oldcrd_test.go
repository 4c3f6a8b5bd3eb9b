// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/controller-manager/manager"
)

var oldWidgets = schema.GroupVersionResource{Group: "old.example.com", Version: "v1", Resource: "widgets"}

// oldProgram has one of the controllers of ensureProgram, for Widgets of the group old.example.com.
func oldProgram(controller int) manager.Program {
	p := ensureProgram()
	p.Controllers = p.Controllers[controller : controller+1]
	p.Scheme = func(s *runtime.Scheme) error {
		s.AddKnownTypes(oldWidgets.GroupVersion(), &Widget{}, &WidgetList{})
		metav1.AddToGroupVersion(s, oldWidgets.GroupVersion())
		return nil
	}
	return p
}

// TestOlderCRD has a CRD that lacks a field of the status.
func TestOlderCRD(t *testing.T) {
	const ns, write = "older-status", "patch widgets/status.old.example.com older-status/a"
	runAnywhere(t, oldProgram(1), func(t *testing.T, e *Env) {
		newer := installOlderCRD(e, ns, "status/properties/image", `{"status":{"image":"v0"}}`)
		e.Create(widget(ns, "v1"))
		expectOldSchema(t, e, write, "writing the status of Widget "+ns+`/a was denied: strict decoding error: `+
			`unknown field "status.image"; apply the CRDs of this version`, func(i int) {
			Update(e, ns, "a", func(w *Widget) { w.Labels = map[string]string{"touched": fmt.Sprint(i)} })
		})
		newer()
		expectRecoveryOf(t, e, write, func() bool {
			w, _ := Get[*Widget](e, ns, "a")
			return w.Status.Image == "v1"
		})
	}, "--namespace="+ns)
}

// TestPlanWithOlderCRD plans for a CRD that lacks a field of the status. The plan does not quote the object.
func TestPlanWithOlderCRD(t *testing.T) {
	p := oldProgram(1)
	Run(t, p, func(t *testing.T, e *Env) {
		installOlderCRD(e, "ns", "status/properties/image", `{"status":{"image":"v0"}}`)
		e.LoseLead()
		e.Create(widget("ns", "v1"))
		r := planOf(t, e, p)
		if len(r.Errors) != 1 || r.Errors[0].Message != `strict decoding error: unknown field "status.image"` {
			t.Errorf("errors %q, want one without the object", r.Errors)
		}
	})
}

// TestOlderCRDOfOwnedKind has a CRD that lacks a field of an owned object.
func TestOlderCRDOfOwnedKind(t *testing.T) {
	const ns, write = "older-owned", "patch widgets.old.example.com older-owned/a"
	runAnywhere(t, oldProgram(0), func(t *testing.T, e *Env) {
		newer := installOlderCRD(e, ns, "spec/properties/containers/items/properties/image",
			`{"spec":{"containers":[{"image":"v0"}]}}`)
		e.Create(owner(ns, map[string]string{"image": "v1"}))
		expectOldSchema(t, e, write, "patching Widget "+ns+`/a was denied: strict decoding error: `+
			`unknown field "spec.containers[0].image"; apply a newer CRD of Widget`, func(i int) {
			Update(e, ns, "a", func(c *corev1.ConfigMap) { c.Labels["touched"] = fmt.Sprint(i) })
		})
		newer()
		expectRecoveryOf(t, e, write, func() bool {
			w, _ := Get[*Widget](e, ns, "a")
			return w.Spec.Containers[0].Image == "v1"
		})
	}, "--namespace="+ns)
}

// installOlderCRD installs a CRD that lacks a property, and waits until the API server rejects content
// that has it. newer adds the property.
func installOlderCRD(e *Env, ns, property, content string) (newer func()) {
	e.t.Helper()
	e.InstallCRDs("testdata/oldwidgets.yaml")
	patch := func(op string, value any) {
		body, err := json.Marshal([]map[string]any{{
			"op": op, "path": "/spec/versions/0/schema/openAPIV3Schema/properties/" + property, "value": value,
		}})
		if err == nil {
			_, err = e.user.Resource(crds).Patch(e.t.Context(), "widgets.old.example.com", types.JSONPatchType, body, metav1.PatchOptions{})
		}
		if err != nil {
			e.t.Fatalf("changing the CRD: %v", err)
		}
	}
	patch("remove", nil)
	e.Create(widget(ns, "v0"))
	e.until("serve the older CRD", func() string {
		dry := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		_, err := e.client(oldWidgets, ns).Patch(e.t.Context(), "a", types.MergePatchType, []byte(content), dry)
		if err == nil {
			return "the field is known"
		}
		return ""
	})
	e.Delete(widget(ns, "v0"))
	e.Settle()
	e.Writes()
	e.Events()
	return func() { patch("add", map[string]string{"type": "string"}) }
}

// expectOldSchema expects that a write is denied, reported by one Event, and tried again slowly, whatever
// happens to the object.
func expectOldSchema(t *testing.T, e *Env, write, message string, touch func(int)) {
	t.Helper()
	began := time.Now()
	var writes, events []string
	for i := range 8 { // for about 8 s
		time.Sleep(time.Second)
		touch(i)
		writes, events = append(writes, e.Writes()...), append(events, e.Events()...)
	}
	e.Settle()
	writes, events = append(writes, e.Writes()...), append(events, e.Events()...)
	tries, most := count(writes, write+": Invalid"), mostTries(time.Since(began))
	if tries < 2 || tries > most || count(writes, write) != tries {
		t.Errorf("%d tries in %v, want 2 to %d: %q", tries, time.Since(began), most, writes)
	}
	expect(t, "Events", events, "Warning WriteDenied "+message)
	if strings.Contains(e.logged(), "Invalid value") {
		t.Errorf("the log quotes the object:\n%s", e.logged())
	}
}

// expectRecoveryOf expects that a write succeeds, and that nothing else happens.
func expectRecoveryOf(t *testing.T, e *Env, write string, done func() bool) {
	t.Helper()
	e.until("write", func() string {
		if done() {
			return ""
		}
		return "the write is missing"
	})
	e.Settle()
	if writes := e.Writes(); count(writes, write)-count(writes, write+": Invalid") != 1 {
		t.Errorf("writes %q, want one that succeeds", writes)
	}
	expect(t, "Events after the CRD is newer", e.Events())
}

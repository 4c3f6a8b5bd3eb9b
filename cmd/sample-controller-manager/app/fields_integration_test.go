// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestTwoControllersShareStatus makes each controller write while the other has its fields
// in the same status.
func TestTwoControllersShareStatus(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t, "--status-aggregation-interval=100ms")
		pod := createPod(t, ns, "a", "node-1", k.labels("a"), controlledBy(k.createServed(t, ns, "a")))
		k.waitPods(t, ns, "a", "1/1 ready on node-1")
		beReady(t, ns, "a")
		object := k.waitCondition(t, ns, "a", "Ready", "Available")
		if k.Kind == "Icecream" {
			waitPlacements(t, ns, "a", 1)
			object = k.MustGet(t, ns, "a")
		}
		ownFields := []string{"availableReplicas", "conditions", "observedGeneration", "readyReplicas", "replicas", "selector"}
		if k.Kind == "Icecream" {
			ownFields = append(ownFields, "placements", "placementsOmitted")
			slices.Sort(ownFields)
		}
		wantFields := func(object metav1.Object) {
			t.Helper()
			want := map[string][]string{k.Controller: ownFields, aggregator: {"pods"}}
			if diff := cmp.Diff(want, statusFields(t, object)); diff != "" {
				t.Errorf("status fields by manager (-want +got):\n%s", diff)
			}
		}
		wantFields(object)

		// Each one writes, and removes nothing of the other.
		keepersStatus := object.Status
		setPod(t, pod, restarted(3))
		pods := k.waitRestarts(t, ns, "a", 3)
		object = k.MustGet(t, ns, "a")
		keepersStatus.Pods = pods
		if diff := cmp.Diff(keepersStatus, object.Status); diff != "" {
			t.Errorf("the aggregator changed fields of others (-want +got):\n%s", diff)
		}
		wantFields(object)
		kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=2")
		object = k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		// The aggregator may have written the new generation, too.
		if diff := cmp.Diff(pods, object.Status.Pods, cmpopts.IgnoreFields(*pods, "ObservedGeneration")); diff != "" {
			t.Errorf("%s changed fields of the aggregator (-want +got):\n%s", k.Controller, diff)
		}
		wantFields(object)
	})
}

// TestForeignStatusIsCorrected edits the status as another manager.
func TestForeignStatusIsCorrected(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t, "--status-aggregation-interval=100ms")
		rs := k.createServed(t, ns, "a")
		createPod(t, ns, "a", "node-1", k.labels("a"), controlledBy(rs))
		createPod(t, ns, "b", "node-2", k.labels("a"), controlledBy(rs))
		k.waitPods(t, ns, "a", "2/2 ready on node-1, node-2")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		if k.Kind == "Icecream" {
			waitPlacements(t, ns, "a", 2)
		}
		want := k.status(t, ns, "a")
		edits := map[string]func(status map[string]any){
			"counts of Pods": func(status map[string]any) {
				status["pods"].(map[string]any)["total"] = 99
				status["pods"].(map[string]any)["summary"] = "all is well"
			},
			"no pods": func(status map[string]any) { delete(status, "pods") },
			"another node": func(status map[string]any) {
				pods := status["pods"].(map[string]any)
				pods["nodes"] = append(pods["nodes"].([]any), map[string]any{"name": "node-x", "pods": 7, "ready": 7})
			},
			"a problem": func(status map[string]any) {
				status["pods"].(map[string]any)["problems"] = []any{map[string]any{"pod": "x", "reason": "Invented"}}
			},
			"a missing node": func(status map[string]any) {
				pods := status["pods"].(map[string]any)
				pods["nodes"] = pods["nodes"].([]any)[1:]
			},
			"nodes in another order": func(status map[string]any) {
				slices.Reverse(status["pods"].(map[string]any)["nodes"].([]any))
			},
			"counts of replicas": func(status map[string]any) { status["availableReplicas"] = 99 },
			"a time":             func(status map[string]any) { status["unavailableSince"] = "2026-01-01T00:00:00Z" },
			"no conditions":      func(status map[string]any) { delete(status, "conditions") },
			"nothing at all":     func(status map[string]any) { clear(status) },
			"an invented condition": func(status map[string]any) {
				status["conditions"] = append([]any{condition("Stalled", "True")}, status["conditions"].([]any)...)
			},
		}
		if k.Kind == "Icecream" {
			edits["a placement"] = func(status map[string]any) {
				status["placements"] = append(status["placements"].([]any), map[string]any{"podUID": "x", "pod": "x", "node": "x"})
			}
			edits["no placements"] = func(status map[string]any) { delete(status, "placements") }
		}
		for _, name := range slices.Sorted(maps.Keys(edits)) {
			t.Run(name, func(t *testing.T) {
				k.editStatus(t, ns, "a", edits[name])
				clustertest.WaitUntil(t, "it is corrected", func(context.Context) error {
					if diff := cmp.Diff(want, k.status(t, ns, "a")); diff != "" {
						return errors.New(diff)
					}
					return nil
				})
			})
		}
	})
}

// TestUpgradeRemovesFalseConditions starts the daemon on statuses with False conditions, as
// earlier versions wrote them, and one condition of another controller.
func TestUpgradeRemovesFalseConditions(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		daemon := startDaemon(t)
		k.createServed(t, ns, "a")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		if err := daemon.Stop(); err != nil {
			t.Fatal(err)
		}
		for manager, conditions := range map[string][]any{
			k.Controller: {condition("Ready", "True"), condition("Reconciling", "False"), condition("Stalled", "False")},
			"auditor":    {condition("Audited", "False")},
		} {
			k.applyStatus(t, ns, "a", manager, map[string]any{"observedGeneration": int64(1), "conditions": conditions})
		}
		startDaemon(t)
		clustertest.WaitUntil(t, "only True conditions, Ready and foreign ones are left", func(ctx context.Context) error {
			object, err := k.Get(ctx, ns, "a")
			if err != nil {
				return err
			}
			got := map[string]string{}
			for _, c := range object.Status.Conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
			}
			if diff := cmp.Diff(map[string]string{"Ready": "True Available", "Audited": "False Invented"}, got); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	})
}

// applyStatus applies the status of an object as another manager.
func (k kind) applyStatus(t *testing.T, ns, name, manager string, status map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.apiVersion(), "kind": k.Kind, "metadata": map[string]any{"name": name}, "status": status,
	}}
	if _, err := k.In(ns).ApplyStatus(t.Context(), name, object, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredPlacementsAreRemoved restores placements of an Icecream without Pods, as another
// manager.
func TestRestoredPlacementsAreRemoved(t *testing.T) {
	ns := newNamespace(t)
	startDaemon(t)
	icecreams.createServed(t, ns, "a")
	beReady(t, ns, "a")
	icecreams.waitCondition(t, ns, "a", "Ready", "Available")
	icecreams.applyStatus(t, ns, "a", "restore-tool", map[string]any{"placements": []any{
		map[string]any{"podUID": "gone", "pod": "gone", "node": "node-9", "time": "2026-01-01T00:00:00Z"},
	}})
	waitPlacements(t, ns, "a", 0)
}

// condition returns a condition with made-up content.
func condition(conditionType, status string) map[string]any {
	return map[string]any{
		"type": conditionType, "status": status, "reason": "Invented", "message": "", "observedGeneration": int64(1), "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
}

// statusFields returns the names of the status fields that each manager owns.
func statusFields(t *testing.T, object metav1.Object) map[string][]string {
	t.Helper()
	owned := map[string][]string{}
	for _, entry := range object.GetManagedFields() {
		var fields map[string]map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		for name := range fields["f:status"] {
			if entry.Subresource != "status" && name == "f:observedGeneration" {
				continue // set by the default
			}
			owned[entry.Manager] = append(owned[entry.Manager], strings.TrimPrefix(name, "f:"))
		}
		slices.Sort(owned[entry.Manager])
	}
	return owned
}

// status returns the status of an object without the times of its conditions.
func (k kind) status(t *testing.T, ns, name string) map[string]any {
	t.Helper()
	object := k.raw(t, ns, name)
	status, _, err := unstructured.NestedMap(object, "status")
	if err != nil {
		t.Fatal(err)
	}
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		delete(condition.(map[string]any), "lastTransitionTime")
	}
	return status
}

func (k kind) raw(t *testing.T, ns, name string) map[string]any {
	t.Helper()
	body, err := k.client().Get().Namespace(ns).Resource(k.Resource).Name(name).Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// editStatus changes the status as "kubectl edit --subresource=status" does.
func (k kind) editStatus(t *testing.T, ns, name string, edit func(status map[string]any)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object := k.raw(t, ns, name)
		status := object["status"].(map[string]any)
		edit(status)
		body, err := json.Marshal(object)
		if err != nil {
			return err
		}
		return k.client().Put().Namespace(ns).Resource(k.Resource).Name(name).SubResource("status").
			Param("fieldManager", "kubectl-edit").SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitPlacements waits until the status of an Icecream has this many placements.
func waitPlacements(t *testing.T, ns, name string, count int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%d placements are recorded", count), func(ctx context.Context) error {
		icecream, err := shared.Sample().IcecreamV1alpha1().Icecreams(ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(icecream.Status.Placements) != count {
			err = fmt.Errorf("got %d", len(icecream.Status.Placements))
		}
		return err
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// undisturbed returns a Workload that has written nothing yet.
func undisturbed() *Workload[*samplev1alpha1.Foo] {
	return &Workload[*samplev1alpha1.Foo]{}
}

// exporter is a Deployment that another operator made for the owner, with a selector of its own.
func exporter() *appsv1.Deployment {
	return deployment(named("exporter"), createdAt(9), withSelector("app", "exporter"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "exporter", Image: "prom/exporter:v1"}}
		d.Spec.Replicas = ptr.To[int32](1)
	})
}

func TestReportedDeployment(t *testing.T) {
	one, two := deployment(named("one"), createdAt(1)), deployment(named("two"), createdAt(2))
	twin := deployment(named("twin"), createdAt(2))
	going := deployment(named("going"), createdAt(3), deleted)
	for name, test := range map[string]struct {
		owned []*appsv1.Deployment
		want  string
	}{
		"none":                            {nil, ""},
		"the one in the spec":             {list(two, deployment()), "web"},
		"adopted under the present name":  {list(deployment(withSelector("app", "other")), one), "web"},
		"in deletion, but the present":    {list(deployment(deleted), one), "web"},
		"the newest former one":           {list(one, two), "two"},
		"as old: the lower UID":           {list(two, twin), "twin"},
		"the newest is in deletion":       {list(one, going), "one"},
		"all are in deletion":             {list(going), "going"},
		"a child of another operator":     {list(exporter()), ""},
		"newer child of another operator": {list(exporter(), one), "one"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if d := owner().Reported(test.owned); d != nil {
				got = d.Name
			}
			if got != test.want {
				t.Errorf("reports %q, want %q", got, test.want)
			}
		})
	}
}

// TestRenameCreatesAsForNewObject renames an object whose Deployment was changed by others.
func TestRenameCreatesAsForNewObject(t *testing.T) {
	former := deployment(named("old"), withSidecar, withReplicas(ptr.To[int32](7)), func(d *appsv1.Deployment) {
		d.Labels = map[string]string{"applyset.kubernetes.io/part-of": "team"}
		d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	})
	want := decide(owner(wantReplicas(nil)), view{}).Create
	for name, view := range map[string]view{
		"renamed":                     {Former: list(former)},
		"a child of another operator": {Former: owner().former(list(exporter()))},
	} {
		if diff := cmp.Diff(want, decide(owner(wantReplicas(nil)), view).Create); diff != "" {
			t.Errorf("%s: creates another Deployment than for a new object (-want +got):\n%s", name, diff)
		}
	}
}

// TestFormerDeploymentIsKeptUntilPresentOneExists makes the present one impossible.
func TestFormerDeploymentIsKeptUntilPresentOneExists(t *testing.T) {
	foreign := deployment(withOwner(nil), withSelector("app", "other"))
	former := deployment(named("old"), withReplicas(ptr.To[int32](9)), withStatus(9, 9, 9))
	for name, test := range map[string]struct {
		live   *appsv1.Deployment
		failed *blocker
		reason string
	}{
		"name taken":    {foreign, nil, "DeploymentConflict"},
		"create denied": {nil, &blocker{Reason: "WriteDenied", Message: "exceeded quota"}, "WriteDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			view := view{Live: test.live, Former: list(former)}
			d, state := undisturbed().decide(owner(), view)
			if d.Correct != former || d.Differing != (fieldSet{fieldReplicas: true}) ||
				(d.Create != nil) != (test.failed != nil) {
				t.Errorf("decision %+v, want the replicas of the former Deployment corrected", d)
			}
			if test.failed != nil {
				state.Blocker = test.failed
			}
			status := NewStatus(owner(), state, workloadv1alpha1.Status{}, later)
			ready := status.Conditions[0]
			if status.Selector == "" || status.Replicas != 9 || ready.Reason != test.reason ||
				!strings.Contains(ready.Message, `until Deployment "web" of Foo "a" exists, the former Deployment "old" is kept`) {
				t.Errorf("status %+v, want %s and the counts and the name of the former Deployment", status, test.reason)
			}
		})
	}
}

// From the moment the present Deployment is ours, no former one is written.
func TestLeftOverDeploymentIsNamedAndNotWritten(t *testing.T) {
	old := deployment(named("old"), createdAt(2), withReplicas(ptr.To[int32](9)), withImage("app:v7"))
	older, going := deployment(named("older"), createdAt(1)), deployment(named("going"), deleted)
	view := view{Live: deployment(), Former: owner().former(list(old, older, going, exporter()))}
	d, state := undisturbed().decide(owner(), view)
	if d.writes() {
		t.Errorf("decision %+v, want no write", d)
	}
	ready := NewStatus(owner(), state, workloadv1alpha1.Status{}, later).Conditions[0]
	want := `Deployment "web" has 3 of 3 replicas available; the former Deployments "old", "older" still run; ` +
		`not carried over from "old": image "app:v7", whatever else the spec does not declare; ` +
		`once you do not need it, run kubectl -n default delete deployment old older`
	if ready.Status != metav1.ConditionTrue || ready.Message != want {
		t.Errorf("Ready is %s: %s\nwant True: %s", ready.Status, ready.Message, want)
	}
}

func TestTerminatingObjectNamesFormerDeployment(t *testing.T) {
	o := owner(func(o *Owner) { o.SetDeletionTimestamp(&later); o.SetFinalizers([]string{"example.com/hold"}) })
	message := decide(o, view{Former: list(deployment(named("old")))}).Blocker.Message
	if !strings.Contains(message, `Deployment "old" has 3 of 3 replicas available`) {
		t.Errorf("message %q, want it to name the former Deployment", message)
	}
}

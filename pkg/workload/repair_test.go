// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// TestRepairsHaveEvents undoes in turn what the owner declares. Each repair has one Event, which says what was changed,
// and by whom.
func TestRepairsHaveEvents(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve(withImage("nginx:1"))
		for _, test := range []struct {
			change func(*appsv1.Deployment)
			event  string
		}{
			{func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) }, `replicas 5 -> 1`},
			{func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" }, `image nginx:2 -> nginx:1`},
		} {
			e.rollOut(test.change)
			e.pass(time.Minute)
			e.wantEvents(`Normal Corrected Deployment "example-web": ` + test.event + `, changed by an unknown writer`)
		}
		e.Delete(e.deployment())
		e.pass(0)
		e.rollOut(ready)
		e.pass(time.Minute)
		if events := e.Events(); len(events) == 0 || events[0] != `Normal Recreated Deployment "example-web" was deleted, and is created again` {
			t.Errorf("Events %q, want first that the Deployment is created again", events)
		}
		// Another name is no repair.
		e.change(withDeployment("other"))
		e.pass(time.Minute)
		for _, event := range e.Events() {
			if event == `Normal Recreated Deployment "other" was deleted, and is created again` {
				t.Error("the first Deployment of a new name counts as a repair")
			}
		}
		// Carrying out another spec is no repair either.
		e.change(withDeployment(deploymentName))
		e.pass(time.Minute)
		e.forget()
		e.change(withReplicas(2))
		e.pass(0)
		e.wantEvents()
	})
}

// TestFirstCreationAfterDenialsIsNoRepair renames the Deployment while a quota denies the new one. Until it exists, the
// status describes the former one.
func TestFirstCreationAfterDenialsIsNoRepair(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.reject("create deployments", "", exceededQuota)
		e.change(withDeployment("other"))
		e.pass(time.Minute)
		e.forget()
		e.BeforeWrite(nil)
		e.pass(10 * time.Minute)
		if n := e.count("create deployments"); n != 1 {
			t.Errorf("%d Deployments are created, want 1", n)
		}
		for _, event := range e.Events() {
			if strings.HasPrefix(event, "Normal Recreated") {
				t.Errorf("Event %q for a Deployment that never existed", event)
			}
		}
	})
}

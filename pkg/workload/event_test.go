// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

func TestEventsOnTransitionsOnly(t *testing.T) {
	conditions := func(state State) []metav1.Condition {
		return NewStatus(owner(), state, workloadv1alpha1.Status{}, earlier).Conditions
	}
	var (
		ready       = conditions(State{Deployment: deployment()})
		reconciling = conditions(State{Deployment: deployment(withStatus(3, 3, 1))})
		conflict    = conditions(State{Blocker: &blocker{Reason: "DeploymentConflict", Message: "in the way"}})
		waiting     = conditions(State{Blocker: &blocker{Reason: "WaitingForDeletion", Message: "wait"}})
		missing     = conditions(State{Blocker: &blocker{Reason: "ContainerMissing", Message: "renamed"}})
		denied      = conditions(State{Blocker: &blocker{Reason: "WriteDenied", Message: "quota"}})
	)
	for name, test := range map[string]struct {
		old, new []metav1.Condition
		want     *event
	}{
		"new, ready at once":          {nil, ready, &event{"Normal", "Synced", "Foo synced successfully"}},
		"new, not yet ready":          {nil, reconciling, nil},
		"became ready":                {reconciling, ready, &event{"Normal", "Synced", "Foo synced successfully"}},
		"still ready":                 {ready, ready, nil},
		"no longer ready":             {ready, reconciling, nil},
		"new, in conflict":            {nil, conflict, &event{"Warning", "ErrResourceExists", "in the way"}},
		"came into conflict":          {ready, conflict, &event{"Warning", "ErrResourceExists", "in the way"}},
		"still in conflict":           {conflict, conflict, nil},
		"stalled for another reason":  {conflict, missing, &event{"Warning", "ContainerMissing", "renamed"}},
		"denied, as the library says": {conflict, denied, nil},
		"waits for a deletion":        {ready, waiting, nil},
		"ready after conflict":        {conflict, ready, &event{"Normal", "Synced", "Foo synced successfully"}},
		"conflict, then moving":       {conflict, reconciling, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, newEvent(owner(), test.old, test.new)); diff != "" {
				t.Errorf("unexpected event (-want +got):\n%s", diff)
			}
		})
	}
}

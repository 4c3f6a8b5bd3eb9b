// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// history is a sequence of what a sync sees of the Deployment. Each status is computed from the one
// before, as by a leader without memory.
type history struct {
	*testing.T
	owner  Owner
	now    time.Time
	status workloadv1alpha1.Status
}

func (h *history) see(after time.Duration, d *appsv1.Deployment, wantReason string) {
	h.Helper()
	h.now = h.now.Add(after)
	trimmed := d.DeepCopy()
	trim(trimmed, ourGroups)
	h.status = NewStatus(h.owner, State{Deployment: trimmed}, h.status, metav1.NewTime(h.now))
	if reason := h.status.Conditions[0].Reason; reason != wantReason {
		h.Errorf("after %v: %s: %s, want %s", h.now.Sub(present), reason, h.status.Conditions[0].Message, wantReason)
	}
}

var complete = withConditions("Progressing", "True", reasonComplete)

func TestUnavailableReplicasStall(t *testing.T) {
	const deadline = defaultDeadline
	some := func(available int32, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
		return deployment(append([]func(*appsv1.Deployment){withStatus(3, 3, available), complete}, changes...)...)
	}
	for name, test := range map[string]func(h *history){
		"after the deadline": func(h *history) {
			h.see(0, deployment(complete), "Available")
			h.see(time.Hour, some(1), "Progressing")
			h.see(deadline-time.Second, some(1), "Progressing")
			h.see(time.Second, some(1), "ReplicasUnavailable")
			h.see(0, deployment(complete), "Available")
		},
		"fewer are available later": func(h *history) {
			h.see(0, some(2), "Progressing")
			h.see(deadline, some(0), "ReplicasUnavailable")
		},
		"not without a pause after a rise": func(h *history) {
			h.see(0, some(1), "Progressing")
			h.see(deadline-time.Second, some(2), "Progressing")
			h.see(deadline-time.Second, some(2), "Progressing")
			h.see(time.Second, some(2), "ReplicasUnavailable")
		},
		"again from zero with a new generation": func(h *history) {
			h.see(0, some(1), "Progressing")
			h.owner = owner(func(o *Owner) { o.Object.(*metav1.ObjectMeta).Generation = 5 })
			h.see(deadline, some(1), "Progressing")
		},
		"again from zero when somebody scales": func(h *history) {
			h.owner = owner(wantReplicas(nil))
			h.see(0, some(1), "Progressing")
			scaled := func(d *appsv1.Deployment) {
				d.Spec.Replicas = ptr.To[int32](5)
				entry := managedBy("kube-controller-manager", "scale", `{"f:spec":{"f:replicas":{}}}`, 0)
				entry.Time = &metav1.Time{Time: h.now.Add(deadline - time.Minute)}
				d.ManagedFields = append(d.ManagedFields, entry)
			}
			h.see(deadline, some(1, scaled), "Progressing")
			h.see(deadline-time.Minute, some(1, scaled), "ReplicasUnavailable")
		},
		"never without a deadline": func(h *history) {
			endless := func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](2147483647) }
			h.see(0, some(1, endless), "Progressing")
			h.see(1000*time.Hour, some(1, endless), "Progressing")
		},
		"sooner with a shorter deadline": func(h *history) {
			short := func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](60) }
			h.see(0, some(1, short), "Progressing")
			h.see(time.Minute, some(1, short), "ReplicasUnavailable")
		},
		"not in a slow rollout": func(h *history) {
			for range 20 {
				h.see(time.Minute, deployment(withStatus(3, 1, 2), withConditions("Progressing", "True", "ReplicaSetUpdated")), "Progressing")
			}
		},
		"while paused": func(h *history) {
			h.see(0, some(1, paused, rolledOut), "Progressing")
			h.see(deadline, some(1, paused, rolledOut), "ReplicasUnavailable")
		},
		"without a ReplicaSet": func(h *history) {
			none := deployment(withStatus(3, 3, 3), withConditions("Progressing", "False", reasonNoReplicaSet),
				func(d *appsv1.Deployment) { d.Generation++ })
			h.see(0, none, "Progressing")
			h.see(deadline, none, "ReplicasUnavailable")
			if message := h.status.Conditions[0].Message; !strings.Contains(message, "kubectl -n default rollout restart deployment web") {
				h.Errorf("message %q, want the command that starts the rollout again", message)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { test(&history{T: t, owner: owner(), now: present}) })
	}
}

func TestUnavailableReplicasQuotePod(t *testing.T) {
	h := &history{T: t, now: present, owner: owner(func(o *Owner) { o.Problem = `Pod "web-1-a": CrashLoopBackOff` })}
	h.see(0, deployment(withStatus(3, 3, 1), complete), "Progressing")
	h.see(defaultDeadline, deployment(withStatus(3, 3, 1), complete), "ReplicasUnavailable")
	want := `Deployment "web" has 1 of 3 replicas available, and no more since 2026-01-03T00:00:00Z; Pod "web-1-a": CrashLoopBackOff`
	if got := h.status.Conditions[0].Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// Somebody pauses a Deployment after it has timed out. The deployment controller keeps that
// condition, but to resume the Deployment is what helps.
func TestPauseIsReportedBeforeDeadline(t *testing.T) {
	h := &history{T: t, now: present, owner: owner()}
	h.see(0, deployment(paused, withStatus(3, 1, 2), withConditions("Progressing", "False", reasonDeadlineExceeded)), "DeploymentPaused")
	if message := h.status.Conditions[0].Message; !strings.Contains(message, "kubectl -n default rollout resume deployment web") {
		t.Errorf("message %q, want the command that resumes the Deployment", message)
	}
}

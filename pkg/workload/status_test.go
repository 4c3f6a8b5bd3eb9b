// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

var (
	earlier = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later   = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
)

func TestNewStatusReportsCounts(t *testing.T) {
	d := deployment(withStatus(3, 2, 1))
	d.Status.ReadyReplicas = 2
	got := NewStatus(owner(), State{Deployment: d}, workloadv1alpha1.Status{}, later)
	got.Conditions = nil
	want := workloadv1alpha1.Status{ObservedGeneration: 4, Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1,
		Selector: "app=nginx,controller=a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected status (-want +got):\n%s", diff)
	}
}

func TestSummaryNamesTheTrueCondition(t *testing.T) {
	for want, d := range map[string]*appsv1.Deployment{
		"Ready, Available, 3 of 3 available, generation 4":         deployment(),
		"Reconciling, Progressing, 1 of 3 available, generation 4": deployment(withStatus(3, 2, 1)),
	} {
		if got := summary(NewStatus(owner(), State{Deployment: d}, workloadv1alpha1.Status{}, later)); got != want {
			t.Errorf("summary %q, want %q", got, want)
		}
	}
}

// A paused object keeps its verdict.
func TestSummaryOfPausedObject(t *testing.T) {
	byAnnotation := metav1.Condition{Type: "Paused", Status: metav1.ConditionTrue, Reason: "PausedByAnnotation"}
	status := NewStatus(owner(), State{Deployment: deployment()}, workloadv1alpha1.Status{}, later)
	status.Conditions = append(status.Conditions, byAnnotation)
	if got, want := summary(status), "Ready, Available; Paused, PausedByAnnotation, 3 of 3 available, generation 4"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	isNew := workloadv1alpha1.Status{Conditions: []metav1.Condition{byAnnotation}}
	if got, want := summary(isNew), "Paused, PausedByAnnotation, 0 of 0 available, generation 0"; got != want {
		t.Errorf("summary of a new object %q, want %q", got, want)
	}
}

func TestStatusSelectorHasExpressions(t *testing.T) {
	d := deployment()
	d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}
	if got, want := NewStatus(owner(), State{Deployment: d}, workloadv1alpha1.Status{}, later).Selector, "app=nginx,controller=a,tier"; got != want {
		t.Errorf("selector %q, want %q", got, want)
	}
}

func TestStatusOmitsOversizedSelector(t *testing.T) {
	for length, want := range map[int]int{4096: 4096, 4097: 0} {
		d := deployment()
		d.Spec.Selector.MatchLabels = map[string]string{"app": strings.Repeat("x", length-len("app="))}
		if got := len(NewStatus(owner(), State{Deployment: d}, workloadv1alpha1.Status{}, later).Selector); got != want {
			t.Errorf("%d characters of a selector of %d, want %d", got, length, want)
		}
	}
}

func TestNewStatusWithoutDeploymentHasZeroes(t *testing.T) {
	got := NewStatus(owner(), State{Blocker: &blocker{Reason: "DeploymentConflict"}}, workloadv1alpha1.Status{}, later)
	got.Conditions = nil
	if diff := cmp.Diff(workloadv1alpha1.Status{ObservedGeneration: 4}, got); diff != "" {
		t.Errorf("unexpected status (-want +got):\n%s", diff)
	}
}

func TestConditionsFollowKstatus(t *testing.T) {
	progressing := func(status corev1.ConditionStatus, reason string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: status,
				Reason: reason, Message: "timed out"}}
		}
	}
	unobserved := func(d *appsv1.Deployment) { d.Generation++ }
	for name, test := range map[string]struct {
		owner  Owner
		state  State
		want   string // the condition that is True
		reason string
	}{
		"all replicas available":                  {owner(), State{Deployment: deployment()}, "Ready", "Available"},
		"all available, and a former Deployment":  {owner(), State{Deployment: deployment(), Former: list(deployment(named("old")))}, "Ready", "Available"},
		"none available, and a former Deployment": {owner(), State{Deployment: deployment(withStatus(3, 3, 0)), Former: list(deployment(named("old")))}, "Reconciling", "Progressing"},
		"none available":                          {owner(), State{Deployment: deployment(withStatus(3, 3, 0))}, "Reconciling", "Progressing"},
		"one not up to date":                      {owner(), State{Deployment: deployment(withStatus(3, 2, 3))}, "Reconciling", "Progressing"},
		"more than wanted": {owner(), State{Deployment: deployment(withReplicas(ptr.To[int32](5)),
			withStatus(5, 5, 5))}, "Reconciling", "Progressing"},
		"an old replica left over":           {owner(), State{Deployment: deployment(withStatus(4, 3, 3))}, "Reconciling", "Progressing"},
		"fewer than wanted":                  {owner(), State{Deployment: deployment(withStatus(2, 2, 2))}, "Reconciling", "Progressing"},
		"Deployment's generation unobserved": {owner(), State{Deployment: deployment(unobserved)}, "Reconciling", "Progressing"},
		"zero wanted and none there": {owner(wantReplicas(ptr.To[int32](0))),
			State{Deployment: deployment(withReplicas(ptr.To[int32](0)), withStatus(0, 0, 0))}, "Ready", "Available"},
		"zero wanted, some left": {owner(wantReplicas(ptr.To[int32](0))),
			State{Deployment: deployment(withReplicas(ptr.To[int32](0)), withStatus(1, 1, 1))}, "Reconciling", "Progressing"},
		"replicas absent: the Deployment's count": {owner(wantReplicas(nil)), State{Deployment: deployment(withReplicas(ptr.To[int32](3)))}, "Ready", "Available"},
		"replicas absent, Deployment's not met":   {owner(wantReplicas(nil)), State{Deployment: deployment(withReplicas(ptr.To[int32](5)))}, "Reconciling", "Progressing"},
		"freshly created": {owner(), State{Deployment: deployment(func(d *appsv1.Deployment) {
			d.Generation, d.Status = 1, appsv1.DeploymentStatus{}
		})}, "Reconciling", "Progressing"},
		"freshly created with zero replicas": {owner(wantReplicas(ptr.To[int32](0))), State{Deployment: deployment(func(d *appsv1.Deployment) {
			d.Generation, d.Status, d.Spec.Replicas = 1, appsv1.DeploymentStatus{}, ptr.To[int32](0)
		})}, "Reconciling", "Progressing"},
		"progress deadline exceeded":          {owner(), State{Deployment: deployment(withStatus(3, 1, 2), progressing("False", "ProgressDeadlineExceeded"))}, "Stalled", "ProgressDeadlineExceeded"},
		"ready after the deadline":            {owner(), State{Deployment: deployment(progressing("False", "ProgressDeadlineExceeded"))}, "Ready", "Available"},
		"deadline of an older generation":     {owner(), State{Deployment: deployment(unobserved, withStatus(3, 1, 2), progressing("False", "ProgressDeadlineExceeded"))}, "Reconciling", "Progressing"},
		"paused in a rollout":                 {owner(), State{Deployment: deployment(withStatus(4, 1, 3), paused)}, "Stalled", "DeploymentPaused"},
		"paused before its first rollout":     {owner(), State{Deployment: deployment(withStatus(0, 0, 0), paused)}, "Stalled", "DeploymentPaused"},
		"paused, and its only Pod is deleted": {owner(), State{Deployment: deployment(withStatus(0, 0, 0), paused, rolledOut)}, "Reconciling", "Progressing"},
		"paused, and being scaled":            {owner(), State{Deployment: deployment(withStatus(1, 1, 1), paused)}, "Reconciling", "Progressing"},
		"paused, and not yet observed":        {owner(), State{Deployment: deployment(unobserved, withStatus(4, 1, 3), paused)}, "Reconciling", "Progressing"},
		"paused with all available":           {owner(), State{Deployment: deployment(paused)}, "Ready", "Available"},
		"progressing": {owner(), State{Deployment: deployment(withStatus(3, 1, 2), progressing("True", "ReplicaSetUpdated"))}, "Reconciling",
			"Progressing"},
		"a blocker that needs user action":      {owner(), State{Blocker: &blocker{Reason: "DeploymentConflict", Message: "m"}}, "Stalled", "DeploymentConflict"},
		"a transient blocker":                   {owner(), State{Blocker: &blocker{Reason: "WaitingForDeletion", Message: "m"}}, "Reconciling", "WaitingForDeletion"},
		"a blocker and an available Deployment": {owner(), State{Deployment: deployment(), Blocker: &blocker{Reason: "WriteDenied", Message: "m"}}, "Stalled", "WriteDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := NewStatus(test.owner, test.state, workloadv1alpha1.Status{}, later).Conditions
			want := []string{"Ready=False", test.want + "=True"}
			if test.want == "Ready" {
				want = want[1:]
			}
			var got []string
			for _, c := range conditions {
				got = append(got, fmt.Sprintf("%s=%s", c.Type, c.Status))
				if c.Reason != test.reason || c.Message == "" || c.ObservedGeneration != 4 {
					t.Errorf("%s has reason %q, message %q and generation %d, want %q, a message and 4", c.Type, c.Reason, c.Message, c.ObservedGeneration, test.reason)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesExplainMissingPods(t *testing.T) {
	with := func(conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
		return deployment(withStatus(0, 0, 0), func(d *appsv1.Deployment) { d.Status.Conditions = conditions })
	}
	var (
		progressing = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetCreated",
			Message: "created"}
		exceeded = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
			Reason: "ProgressDeadlineExceeded", Message: "timed out."}
		noSet = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
			Reason: "ReplicaSetCreateError", Message: "no more replicasets"}
		noPods = appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
			Reason: "FailedCreate", Message: "pods are forbidden"}
		pods = appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionFalse,
			Reason: "FailedCreate", Message: "pods were forbidden"}
	)
	unobserved := with(noSet)
	unobserved.Generation++
	const counts = `Deployment "web" has 0 of 3 replicas available, 0 up to date, 0 in all`
	for name, test := range map[string]struct {
		d      *appsv1.Deployment
		reason string
		want   string
	}{
		"no trouble":                     {with(progressing, pods), "Progressing", counts},
		"Pods denied":                    {with(progressing, noPods), "Progressing", counts + ": pods are forbidden"},
		"ReplicaSet denied":              {with(noSet), "Progressing", counts + ": no more replicasets"},
		"ReplicaSet never created":       {unobserved, "Progressing", counts + ": no more replicasets"},
		"deadline exceeded":              {with(exceeded), "ProgressDeadlineExceeded", `Deployment "web": timed out`},
		"Pods denied, deadline exceeded": {with(exceeded, noPods), "ProgressDeadlineExceeded", `Deployment "web": timed out: pods are forbidden`},
	} {
		t.Run(name, func(t *testing.T) {
			ready := NewStatus(owner(), State{Deployment: test.d}, workloadv1alpha1.Status{}, later).Conditions[0]
			if ready.Reason != test.reason || ready.Message != test.want {
				t.Errorf("%s: %q, want %s: %q", ready.Reason, ready.Message, test.reason, test.want)
			}
		})
	}
}

// A Deployment that the object adopted selects its Pods by its own labels.
func TestMessagesReportUnwatchedPods(t *testing.T) {
	for name, test := range map[string]struct {
		d    *appsv1.Deployment
		want bool
	}{
		"created by us":         {deployment(), false},
		"adopted":               {deployment(withSelector("app", "adopted")), true},
		"adopted, without Pods": {deployment(withSelector("app", "adopted"), withStatus(0, 0, 0)), true},
	} {
		t.Run(name, func(t *testing.T) {
			message := NewStatus(owner(), State{Deployment: test.d}, workloadv1alpha1.Status{}, later).Conditions[0].Message
			if got := strings.HasSuffix(message, `; its Pods are not watched, because its selector lacks the label "controller"`); got != test.want {
				t.Errorf("message %q, want a note that Pods are not watched: %v", message, test.want)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 40000), strings.Repeat("€", 20000)} {
		conditions := NewStatus(owner(), State{Blocker: &blocker{Reason: "InvalidSpec", Message: long}}, workloadv1alpha1.Status{},
			later).Conditions
		for _, c := range conditions {
			if len(c.Message) > 2003 || !utf8.ValidString(c.Message) {
				t.Errorf("%s has a message of %d bytes, want at most 2003: %.20q", c.Type, len(c.Message), c.Message)
			}
		}
		if event := newEvent(owner(), nil, conditions); len(event.Message) < 1990 {
			t.Errorf("the Event has a message of %d bytes, want about 2000", len(event.Message))
		}
	}
}

func TestTransitionTimesChangeOnlyWithStatus(t *testing.T) {
	rolling, further := State{Deployment: deployment(withStatus(3, 3, 1))},
		State{Deployment: deployment(withStatus(3, 3, 2))}
	conflict := State{Blocker: &blocker{Reason: "DeploymentConflict", Message: "in the way"}}
	old := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, LastTransitionTime: earlier}
	}
	for name, test := range map[string]struct {
		current []metav1.Condition
		state   State
		want    map[string]metav1.Time
	}{
		"new": {nil, rolling, map[string]metav1.Time{"Ready": later, "Reconciling": later}},
		"same conditions": {NewStatus(owner(), rolling, workloadv1alpha1.Status{}, earlier).Conditions, further,
			map[string]metav1.Time{"Ready": earlier, "Reconciling": earlier}},
		"became ready": {NewStatus(owner(), further, workloadv1alpha1.Status{}, earlier).Conditions,
			State{Deployment: deployment()}, map[string]metav1.Time{"Ready": later}},
		"stalled instead": {NewStatus(owner(), further, workloadv1alpha1.Status{}, earlier).Conditions, conflict,
			map[string]metav1.Time{"Ready": earlier, "Stalled": later}},
		"an earlier format": {[]metav1.Condition{old("Ready", "True"), old("Reconciling", "False"), old("Stalled", "False")}, rolling,
			map[string]metav1.Time{"Ready": later, "Reconciling": later}},
		"earlier format, Reconciling": {[]metav1.Condition{old("Ready", "False"), old("Reconciling", "True"), old("Stalled", "False")}, rolling,
			map[string]metav1.Time{"Ready": earlier, "Reconciling": earlier}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]metav1.Time{}
			for _, c := range NewStatus(owner(), test.state, workloadv1alpha1.Status{Conditions: test.current},
				later).Conditions {
				got[c.Type] = c.LastTransitionTime
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected transition times (-want +got):\n%s", diff)
			}
		})
	}
}

// A condition of ours that no longer holds is removed, one of another controller stays.
func TestForeignConditionsAreKept(t *testing.T) {
	for want, current := range map[string][]string{
		"Ready":               {"Ready", "Stalled"},
		"Audited Ready":       {"Audited", "Reconciling", "Stalled", "Ready"},
		"Ready Audited Other": {"Ready", "Audited", "Stalled", "Other"},
	} {
		var before workloadv1alpha1.Status
		for _, conditionType := range current {
			before.Conditions = append(before.Conditions, metav1.Condition{Type: conditionType})
		}
		var got []string
		for _, c := range NewStatus(owner(), State{Deployment: deployment()}, before, later).Conditions {
			got = append(got, c.Type)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("conditions %v become %v, want %s", current, got, want)
		}
	}
}

func TestPodsAreLeftToTheAggregator(t *testing.T) {
	current := workloadv1alpha1.Status{Pods: &workloadv1alpha1.PodSummary{Problems: []workloadv1alpha1.PodProblem{{Pod: "web-1-a",
		Reason: "CrashLoopBackOff"}}}}
	if got := NewStatus(owner(), State{Deployment: deployment()}, current, later); got.Pods != current.Pods {
		t.Errorf("Pods %+v, want them unchanged", got.Pods)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// conditionTypes are the conditions that a Status may have, in order.
var conditionTypes = []string{workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionReconciling,
	workloadv1alpha1.ConditionStalled}

// maxSelector is the maximum length of the selector in the schema of the status.
const maxSelector = 4096

// NewStatus returns the status of the owner whose Deployment is in the given state. current is its
// present status, from which what other controllers write is kept. The transition time of a condition is
// kept if its status is the same, else it is now.
func NewStatus(o Owner, state State, current workloadv1alpha1.Status, now metav1.Time) workloadv1alpha1.Status {
	d := state.Deployment
	status := workloadv1alpha1.Status{
		ObservedGeneration: o.GetGeneration(), UnavailableSince: unavailableSince(o, d, current, now), Pods: current.Pods,
	}
	own := judge(o, state, status.UnavailableSince, now.Time).conditions(o.GetGeneration(), current.Conditions, now)
	status.Conditions = withOwn(current.Conditions, own)
	if d == nil {
		return status
	}
	status.Replicas = d.Status.Replicas
	status.ReadyReplicas = d.Status.ReadyReplicas
	status.AvailableReplicas = d.Status.AvailableReplicas
	// A truncated selector would select other Pods.
	if selector := formatSelector(d.Spec.Selector); len(selector) <= maxSelector {
		status.Selector = selector
	}
	return status
}

// formatSelector is a fast version of [metav1.FormatLabelSelector], which parses its own
// output. Nearly all selectors are plain labels.
func formatSelector(selector *metav1.LabelSelector) string {
	if selector == nil || len(selector.MatchLabels) == 0 || len(selector.MatchExpressions) > 0 {
		return metav1.FormatLabelSelector(selector)
	}
	return labels.FormatLabels(selector.MatchLabels)
}

// withOwn returns the conditions with those of conditionTypes as in own. Others are kept.
func withOwn(conditions, own []metav1.Condition) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range conditions {
		if now := meta.FindStatusCondition(own, c.Type); now != nil {
			all = append(all, *now)
		} else if !slices.Contains(conditionTypes, c.Type) {
			all = append(all, c)
		}
	}
	for _, c := range own {
		if meta.FindStatusCondition(all, c.Type) == nil {
			all = append(all, c)
		}
	}
	return all
}

// verdict is why one condition is True: see [ConditionFor].
type verdict struct {
	reason, message string
}

// conditions returns Ready and, unless that is True, the condition that explains it. By the
// kstatus convention, a condition other than Ready is absent unless it is True.
func (v verdict) conditions(generation int64, current []metav1.Condition, now metav1.Time) []metav1.Condition {
	all := []metav1.Condition{{
		Type:               workloadv1alpha1.ConditionReady,
		Status:             metav1.ConditionTrue,
		Reason:             v.reason,
		Message:            bounded(v.message),
		ObservedGeneration: generation,
		LastTransitionTime: now,
	}}
	if conditionType := ConditionFor(v.reason); conditionType != workloadv1alpha1.ConditionReady {
		why := all[0]
		why.Type = conditionType
		all[0].Status = metav1.ConditionFalse
		all = append(all, why)
	}
	for i := range all {
		if old := meta.FindStatusCondition(current, all[i].Type); old != nil && old.Status == all[i].Status {
			all[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return all
}

// judge decides which condition is True, and why. See [workloadv1alpha1.ConditionReady].
func judge(o Owner, state State, unavailable *metav1.Time, now time.Time) verdict {
	v := judgeDeployment(o, state, unavailable, now)
	d := state.Deployment
	if d == nil {
		return v
	}
	if d.Name != o.DeploymentName && o.GetDeletionTimestamp() == nil && o.invalid() == "" {
		v.message += "; " + o.keptMessage(d)
	}
	if left := o.leftOverMessage(state.Former); left != "" {
		v.message += "; " + left
	}
	if !pods.Watched(d) {
		v.message += fmt.Sprintf("; its Pods are not watched, because its selector lacks the label %q", controllerLabel)
	}
	return v
}

func judgeDeployment(o Owner, state State, unavailable *metav1.Time, now time.Time) verdict {
	if b := state.Blocker; b != nil {
		return verdict{b.Reason, b.Message}
	}
	d := state.Deployment
	wanted := o.wanted(d)
	counts := fmt.Sprintf("%d of %d replicas available", d.Status.AvailableReplicas, wanted)
	if d.Status.ObservedGeneration < d.Generation && !lacksReplicaSet(d) {
		return verdict{workloadv1alpha1.ReasonProgressing,
			fmt.Sprintf("Deployment %q is not yet observed by its controller", d.Name) + podCreationError(d)}
	}
	if d.Status.Replicas == wanted && d.Status.UpdatedReplicas == wanted && d.Status.AvailableReplicas == wanted &&
		!lacksReplicaSet(d) {
		return verdict{workloadv1alpha1.ReasonAvailable, fmt.Sprintf("Deployment %q has %s", d.Name, counts)}
	}
	all := fmt.Sprintf("%s, %d up to date, %d in all", counts, d.Status.UpdatedReplicas, d.Status.Replicas)
	if waitsForResume(d, wanted) {
		return verdict{workloadv1alpha1.ReasonDeploymentPaused,
			fmt.Sprintf("Deployment %q is paused, with %s: resume it with kubectl -n %s rollout resume deployment %s", d.Name, all, d.Namespace, d.Name)}
	}
	if c := conditionOf(d, appsv1.DeploymentProgressing, corev1.ConditionFalse); c != nil &&
		c.Reason == reasonDeadlineExceeded {
		return verdict{workloadv1alpha1.ReasonProgressDeadlineExceeded,
			fmt.Sprintf("Deployment %q: %s", d.Name, strings.TrimSuffix(c.Message, ".")) + podCreationError(d) + o.pods()}
	}
	if unavailable != nil && stallsIn(d, unavailable, now) == 0 {
		return verdict{workloadv1alpha1.ReasonReplicasUnavailable, o.unavailable(d, counts, *unavailable)}
	}
	return verdict{workloadv1alpha1.ReasonProgressing, fmt.Sprintf("Deployment %q has %s", d.Name, all) + podCreationError(d)}
}

// unavailable returns the message for a Deployment whose replicas stay unavailable.
func (o Owner) unavailable(d *appsv1.Deployment, counts string, since metav1.Time) string {
	at := since.UTC().Format(time.RFC3339)
	if lacksReplicaSet(d) {
		// The deployment controller does not try again by itself.
		return fmt.Sprintf("Deployment %q has had no ReplicaSet for its template since %s%s; once that is fixed, run kubectl -n %s rollout restart deployment %s",
			d.Name, at, podCreationError(d), d.Namespace, d.Name)
	}
	return fmt.Sprintf("Deployment %q has %s, and no more since %s", d.Name, counts, at) + podCreationError(d) + o.pods()
}

// pods returns, with leading punctuation, what the Pod that is worst off reports.
func (o Owner) pods() string {
	if o.Problem == "" {
		return ""
	}
	return "; " + o.Problem
}

// waitsForResume reports whether the Deployment is paused during a rollout, or before its
// first one, when it has no ReplicaSet. A paused Deployment is still scaled, so its updated
// replicas can become available.
func waitsForResume(d *appsv1.Deployment, wanted int32) bool {
	return d.Spec.Paused && (d.Status.UpdatedReplicas < d.Status.Replicas || d.Status.Replicas == 0 && wanted > 0 &&
		d.Annotations[revisionAnnotation] == "")
}

// podCreationError returns, with leading punctuation, why the Deployment cannot create Pods or their
// ReplicaSet, if its conditions say so. The deployment controller retries, and such errors
// are often short, so they alone do not make the owner Stalled.
func podCreationError(d *appsv1.Deployment) string {
	if c := conditionOf(d, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue); c != nil {
		return ": " + c.Message
	}
	if lacksReplicaSet(d) {
		return ": " + conditionOf(d, appsv1.DeploymentProgressing, corev1.ConditionFalse).Message
	}
	return ""
}

// conditionOf returns the Deployment's condition if it has the given status, else nil.
func conditionOf(d *appsv1.Deployment, conditionType appsv1.DeploymentConditionType,
	status corev1.ConditionStatus) *appsv1.DeploymentCondition {
	i := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == conditionType &&
			c.Status == status
	})
	if i < 0 {
		return nil
	}
	return &d.Status.Conditions[i]
}

// bounded cuts a message from elsewhere to a length that a status and an Event accept.
func bounded(message string) string {
	const most = 2000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "..."
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// TestStalledRollouts has a Deployment not come to its Pods, for what others do, and
// one that might not for its name.
func TestStalledRollouts(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k kind, ns string){
		"no Node fits":    rolloutWithoutNode,
		"Pods are denied": rolloutWithoutPods,
		"no ReplicaSet":   rolloutWithoutReplicaSet,
		"longest name":    longName,
	})
}

func rolloutWithoutNode(t *testing.T, k kind, ns string) {
	k.create(t, ns, "a", 2)
	k.waitReady(t, ns, "a", 2)
	kubectl(t, "-n", ns, "patch", "deployment", "a", "-p",
		`{"spec":{"progressDeadlineSeconds":3,"template":{"spec":{"nodeSelector":{"is":"nowhere"}}}}}`)
	k.waitSays(t, ns, "a", "Stalled", "ProgressDeadlineExceeded", "has timed out progressing")
	k.wantWarning(t, ns, "a", "ProgressDeadlineExceeded")
	kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	k.waitReady(t, ns, "a", 2)
	k.wantWarning(t, ns, "a", "ProgressDeadlineExceeded")
	if got := kubectl(t, "-n", ns, "get", "deployment", "a", "-o", "jsonpath={.spec.progressDeadlineSeconds}"); got != "3" {
		t.Errorf("progressDeadlineSeconds = %s, want the 3 of whoever set it", got)
	}
}

func rolloutWithoutPods(t *testing.T, k kind, ns string) {
	const reason = `violates PodSecurity "restricted:latest"`
	kubectl(t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	k.create(t, ns, "a", 2)
	k.waitSays(t, ns, "a", "Reconciling", "Progressing", reason)
	kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"spec":{"progressDeadlineSeconds":1}}`)
	k.waitSays(t, ns, "a", "Stalled", "ProgressDeadlineExceeded", reason)
	k.wantWarning(t, ns, "a", "ProgressDeadlineExceeded")
	kubectl(t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce-")
	k.waitReady(t, ns, "a", 2)
}

func rolloutWithoutReplicaSet(t *testing.T, k kind, ns string) {
	kubectl(t, "-n", ns, "create", "quota", "none", "--hard=count/replicasets.apps=0")
	waitUntil(t, "the quota is in force", func(ctx context.Context) error {
		quota, err := kube.CoreV1().ResourceQuotas(ns).Get(ctx, "none", metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) == 0 {
			err = errors.New("nothing is counted")
		}
		return err
	})
	k.create(t, ns, "a", 1)
	k.waitSays(t, ns, "a", "Reconciling", "Progressing", "exceeded quota: none")
	kubectl(t, "-n", ns, "delete", "quota", "none")
	k.waitReady(t, ns, "a", 1)
	k.wantWarning(t, ns, "a", "")
}

func longName(t *testing.T, k kind, ns string) {
	name := strings.Repeat("x", 253)
	k.createNaming(t, ns, name, "a")
	k.waitReady(t, ns, name, 1)
	object := k.mustGet(t, ns, name)
	if got := strings.Count(kubectl(t, "-n", ns, "get", "pods", "-l", object.Status.Selector, "-o", "name"), "pod/"); got != 1 {
		t.Errorf("%d Pods are selected by %q, want 1", got, object.Status.Selector)
	}
}

// waitSays waits until a condition of an object is True for a reason, and its message
// and that of Ready have the given words.
func (k kind) waitSays(t *testing.T, ns, name, conditionType, reason, words string) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%s %s is %s for %s", k.Kind, name, conditionType, reason), func(ctx context.Context) error {
		object, err := k.get(ctx, ns, name)
		if err != nil {
			return err
		}
		if c := conditionOf(object, conditionType); c.Reason != reason || !strings.Contains(c.Message, words) || !strings.Contains(readyMessage(object), words) {
			return fmt.Errorf("conditions %+v", object.Status.Conditions)
		}
		return nil
	})
}

func readyMessage(object *samplev1alpha1.Foo) string {
	for _, c := range object.Status.Conditions {
		if c.Type == "Ready" {
			return c.Message
		}
	}
	return ""
}

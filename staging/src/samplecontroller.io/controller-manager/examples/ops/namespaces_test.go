// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/examples/ops/vault"
	"samplecontroller.io/controller-manager/managertest"
)

func TestNamespaceDefaults(t *testing.T) {
	const quota, policy = "resourcequotas team/ops-defaults", "networkpolicies.networking.k8s.io team/ops-default-deny"
	run(t, &vault.Fake{}, func(t *testing.T, e *managertest.Env) {
		labels := map[string]string{defaultsLabel: "true"}
		e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: labels}})
		e.Settle()
		expect(t, "labeled", e.Writes(), "create "+quota, "create "+policy)
		managertest.Update(e, "team", quotaName, func(q *corev1.ResourceQuota) { q.Spec.Hard = nil })
		e.Settle()
		expect(t, "changed by a user", e.Writes(), "patch "+quota)
		managertest.Update(e, "", "team", func(n *corev1.Namespace) { n.Labels = nil })
		e.Settle()
		expect(t, "label removed", e.Writes(), "delete "+quota, "delete "+policy)
	}, "--controllers=namespace-defaults-controller", "--default-pods=7")
}

// TestContestedQuota has another writer that changes the quota each second. Neither writer can win, so the
// controller does not compete, and says so.
func TestContestedQuota(t *testing.T) {
	run(t, &vault.Fake{}, func(t *testing.T, e *managertest.Env) {
		e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{defaultsLabel: "true"}}})
		e.Settle()
		e.Writes()
		for range 60 {
			managertest.Update(e, "team", quotaName, func(q *corev1.ResourceQuota) { q.Spec.Hard = nil })
			time.Sleep(time.Second + time.Millisecond) // never at the time of a correction
		}
		if n := len(e.Writes()); n < 10 || n > 12 {
			t.Errorf("%d patches in a minute, want six, and one each 10 s", n)
		}
		events := e.Events()
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning Contested /spec/hard of ResourceQuota team/ops-defaults is also set by ") {
			t.Errorf("Events %q, want one that names the field", events)
		}
	}, "--controllers=namespace-defaults-controller")
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNamespaceDefaults(t *testing.T) {
	e := newEnv(t)
	r := &namespaceReconciler{Client: e, pods: 7}
	labels := map[string]string{defaultsLabel: "true"}
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: labels}}
	e.must(e.user.Create(t.Context(), team))
	e.reconcile(r, "", "team", "labeled", "create "+quotaName, "create "+policyName)

	var quota corev1.ResourceQuota
	e.must(e.user.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: quotaName}, &quota))
	quota.Spec.Hard = nil
	e.must(e.user.Update(t.Context(), &quota))
	e.reconcile(r, "", "team", "changed by a user", "update "+quotaName)

	team.Labels = nil
	e.must(e.user.Update(t.Context(), team))
	e.reconcile(r, "", "team", "label removed", "delete "+quotaName, "delete "+policyName)
}

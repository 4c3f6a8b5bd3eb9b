// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/examples/ops/vault"
	"samplecontroller.io/controller-manager/managertest"
)

// TestDeletionBudget creates 5,000 objects, then removes the label of 100 Namespaces by mistake, so that the
// controller wants to delete 200 objects.
func TestDeletionBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("creates thousands of objects")
	}
	const namespaces, edited, budget = 2500, 100, 50
	managertest.Run(t, program(&vault.Fake{}), func(t *testing.T, e *managertest.Env) {
		for i := range namespaces {
			e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("team-", i), Labels: map[string]string{defaultsLabel: "true"},
			}})
		}
		e.Settle()
		created := 0
		for _, w := range e.Writes() {
			if strings.HasPrefix(w, "create ") {
				created++
			}
		}
		if events := e.Events(); created != 2*namespaces || len(events) > 0 {
			t.Errorf("%d objects are created, want %d, with the Events %q, want none", created, 2*namespaces, events)
		}
		for i := range edited {
			managertest.Update(e, "", fmt.Sprint("team-", i), func(n *corev1.Namespace) { n.Labels = nil })
		}
		e.Settle()
		wantDeletions(t, e, "after the edit", budget)
		time.Sleep(time.Hour)
		e.Settle()
		wantDeletions(t, e, "an hour later", 0)
		// The mistake is corrected for some Namespaces. What is not deleted goes on.
		managertest.Update(e, "", "team-99", func(n *corev1.Namespace) { n.Labels = map[string]string{defaultsLabel: "true"} })
		e.AllowDeletions("namespace-defaults-controller")
		time.Sleep(time.Minute)
		e.Settle()
		wantDeletions(t, e, "allowed", 2*(edited-1)-budget)
	}, "--controllers=namespace-defaults-controller", fmt.Sprint("--max-deletions-per-minute=", budget))
}

func wantDeletions(t *testing.T, e *managertest.Env, when string, want int) {
	t.Helper()
	deleted := 0
	for _, w := range e.Writes() {
		if strings.HasPrefix(w, "delete ") && !strings.Contains(w, ": ") {
			deleted++
		}
	}
	if deleted != want {
		t.Errorf("%s: %d objects are deleted, want %d", when, deleted, want)
	}
}

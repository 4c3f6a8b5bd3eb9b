// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestNamespacesAreServedFairly starts a daemon with one worker. One namespace has many
// objects, all newer than the only object in each of some other namespaces.
func TestNamespacesAreServedFairly(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		const small, many = 5, 60
		isSmall := map[string]bool{}
		for range small {
			ns := newNamespace(t)
			isSmall[ns] = true
			k.Create(t, ns, "a", 1)
		}
		large := newNamespace(t)
		for i := range many {
			k.Create(t, large, fmt.Sprint("a-", i), 1)
		}
		startDaemon(t, k.oneWorker())
		for i := range many {
			k.waitCondition(t, large, fmt.Sprint("a-", i), "Reconciling", "Progressing")
		}
		events := shared.Audit(t, cluster.ByUserAgent(k.Controller), func(event auditv1.Event) bool {
			return cluster.Call(event) == "create deployments" && (event.ObjectRef.Namespace == large || isSmall[event.ObjectRef.Namespace])
		})
		served, others := 0, 0
		for _, event := range events {
			if !isSmall[event.ObjectRef.Namespace] {
				others++
				continue
			}
			if served++; others > small {
				t.Errorf("namespace %s was served after %d objects of the large one, want at most %d", event.ObjectRef.Namespace, others, small)
			}
		}
		if served != small || others != many {
			t.Errorf("%d and %d Deployments were created, want %d and %d", served, others, small, many)
		}
	})
}

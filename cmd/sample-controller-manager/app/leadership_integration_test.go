// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/leadership"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

func TestLeaseIsReleasedAfterTheLastWrite(t *testing.T) {
	ns := newNamespace(t)
	server := startDaemon(t)
	foos.create(t, ns, "a", 1)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	if holder := ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder == "" {
		t.Error("the Lease has no holder while the daemon leads")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("the Lease is held by %q after the daemon has stopped", holder)
	}
	events, err := testCluster.AuditEvents(func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && isWrite(event)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(events) - 1; ; i-- {
		call := cluster.Call(events[i])
		if call == "update leases" {
			break
		}
		// Events of the API are no work of a leader.
		if !strings.HasSuffix(call, " events") && !strings.Contains(call, "reviews") {
			t.Errorf("%s was written after the Lease was released", call)
		}
	}
}

func TestLostLeaseEndsTheDaemon(t *testing.T) {
	server := startDaemon(t)
	server.MayFail()
	eventually(t, "the daemon leads", func(context.Context) error {
		if ptr.Deref(lease(t).Spec.HolderIdentity, "") == "" {
			return errors.New("nobody does")
		}
		return nil
	})
	usurp := []byte(`{"spec":{"holderIdentity":"usurper","leaseDurationSeconds":3600}}`)
	if _, err := kube.CoordinationV1().Leases(namespace).Patch(t.Context(), namespace, types.MergePatchType, usurp, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kube.CoordinationV1().Leases(namespace).Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if err := server.Wait(); !errors.Is(err, leadership.ErrLost) {
		t.Errorf("the daemon ended with %v, want %v", err, leadership.ErrLost)
	}
	if holder := ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder != "usurper" {
		t.Errorf("the Lease is held by %q: that of another was overwritten", holder)
	}
}

func TestWithoutElectionThereIsNoLease(t *testing.T) {
	before := lease(t)
	ns := newNamespace(t)
	startDaemon(t, "--leader-elect=false")
	foos.create(t, ns, "a", 1)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	if after := lease(t); after.ResourceVersion != before.ResourceVersion {
		t.Error("the Lease was written")
	}
}

func TestRequestsNameWhomTheyServe(t *testing.T) {
	startDaemon(t)
	for _, k := range sideBySide(t) {
		k.create(t, k.ns, "a", 1)
		k.waitCondition(t, k.ns, "a", "Reconciling", "Progressing")
		k.waitPods(t, k.ns, "a", "none")
	}
	events, err := testCluster.AuditEvents(func(event auditv1.Event) bool {
		return strings.HasPrefix(event.User.Username, "system:serviceaccount:"+namespace+":")
	})
	if err != nil {
		t.Fatal(err)
	}
	keepers := []string{foos.controller, icecreams.controller}
	want := map[string][]string{
		"create deployments": keepers, "patch deployments": keepers,
		foos.patchStatus(): {foos.controller, aggregator}, icecreams.patchStatus(): {icecreams.controller, aggregator},
		"watch deployments": {"informers"}, "watch foos": {"informers"}, "watch icecreams": {"informers"},
		"watch replicasets": {"informers"}, "watch pods": {"informers"},
		"get leases": {"leader-election"}, "create leases": {"leader-election"}, "update leases": {"leader-election"},
		"create events": {"events"}, "patch events": {"events"},
	}
	seen := map[string]bool{}
	for _, event := range events {
		call := cluster.Call(event)
		if names, ok := want[call]; ok {
			name := event.UserAgent[strings.LastIndex(event.UserAgent, "/")+1:]
			seen[call+" by "+name] = true
			if !strings.HasPrefix(event.UserAgent, "sample-controller-manager/") || !slices.Contains(names, name) {
				t.Errorf("%s has the user agent %q, want sample-controller-manager/.../ and one of %q", call, event.UserAgent, names)
			}
		}
		if cluster.Unauthorized(event) {
			t.Errorf("%s was denied: the manifests lack a rule: %s", call, event.ResponseStatus.Message)
		}
	}
	for _, call := range []string{
		"create deployments by foo-controller", "create deployments by icecream-controller",
		"patch foos/status by foo-controller", "patch icecreams/status by icecream-controller",
		"patch foos/status by " + aggregator, "patch icecreams/status by " + aggregator,
		"watch deployments by informers", "watch foos by informers", "update leases by leader-election",
	} {
		if !seen[call] {
			t.Errorf("no request %q in the audit log: this test would not see its user agent", call)
		}
	}
}

func isWrite(event auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// lease returns the daemon's Lease, empty if there is none.
func lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease, err := kube.CoordinationV1().Leases(namespace).Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil {
		return &coordinationv1.Lease{}
	}
	return lease
}

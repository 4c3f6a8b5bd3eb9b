// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// daemonUser is whom the manifests grant to.
const daemonUser = "system:serviceaccount:" + daemonName + ":" + daemonName

// mayBeUnused is what is granted without a request for it in all of these tests, and why
// it is granted nevertheless.
var mayBeUnused = map[string]string{
	"update foos/finalizers.samplecontroller.k8s.io":    "asked for by admission, never by a request: TestFinalizersMayBeUpdated",
	"update icecreams/finalizers.controller.nicoleh.io": "as for Foos",
	"list pods":             "where a watch cannot begin with the present state",
	"list replicasets.apps": "as for Pods",
	"list configmaps/extension-apiserver-authentication": "as for Pods, by Kubernetes' own role",
}

// provocation is what a test has the daemon be denied.
type provocation struct {
	from, to time.Time // to is zero while it lasts
	matches  []func(auditv1.Event) bool
}

var provocations struct {
	sync.Mutex
	all []*provocation
}

// provokeDenials declares that the daemon is denied, until the end of the test, what all
// conditions match. It is to be called before anything is started or taken away.
func provokeDenials(t *testing.T, matches ...func(auditv1.Event) bool) {
	t.Helper()
	p := declareDenials(matches...)
	t.Cleanup(func() {
		provocations.Lock()
		defer provocations.Unlock()
		p.to = time.Now()
	})
}

// provokeDenialsIn declares that the daemon is denied things in a namespace of the test.
// What is in there may be tried again for longer than the test lasts.
func provokeDenialsIn(ns string) { declareDenials(cluster.InNamespace(ns)) }

func declareDenials(matches ...func(auditv1.Event) bool) *provocation {
	p := &provocation{from: time.Now(), matches: matches}
	provocations.Lock()
	defer provocations.Unlock()
	provocations.all = append(provocations.all, p)
	return p
}

// provoked tells whether a test has declared that the request would be denied.
func provoked(event auditv1.Event) bool {
	provocations.Lock()
	defer provocations.Unlock()
	return slices.ContainsFunc(provocations.all, func(p *provocation) bool {
		at := event.RequestReceivedTimestamp.Time
		return !at.Before(p.from) && (p.to.IsZero() || at.Before(p.to)) &&
			!slices.ContainsFunc(p.matches, func(matches func(auditv1.Event) bool) bool { return !matches(event) })
	})
}

func byDaemon(event auditv1.Event) bool { return event.User.Username == daemonUser }

// denied matches requests that were forbidden, by RBAC or by admission.
func denied(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden
}

// undeclared returns which of the requests were denied without a test that has declared it,
// and how often.
func undeclared(events []auditv1.Event) (denials []error) {
	counts, first := map[string]int{}, map[string]string{}
	for _, event := range events {
		if denied(event) && !provoked(event) {
			what := cluster.Call(event) + ": " + event.ResponseStatus.Message
			if counts[what]++; counts[what] == 1 {
				first[what] = event.RequestReceivedTimestamp.Format(time.TimeOnly)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		denials = append(denials, fmt.Errorf("the daemon was denied, first at %s, times %d: %s", first[what], counts[what], what))
	}
	return denials
}

// wantNoDenials checks that so far the manifests granted all that the daemon asked for.
func wantNoDenials(t *testing.T) {
	t.Helper()
	events, err := testCluster.AuditEvents(byDaemon, denied)
	if err := errors.Join(append(undeclared(events), err)...); err != nil {
		t.Error(err)
	}
}

// checkPrivileges compares what the daemon asked for in all the tests that have run with
// what the manifests grant: nothing else, but what a test has provoked, and if that was
// all that the daemon does, nothing less.
func checkPrivileges(all bool) error {
	events, err := testCluster.AuditEvents(byDaemon)
	if err != nil {
		return err
	}
	used, refused := sets.New[string](), 0
	for _, event := range events {
		if denied(event) {
			refused++
		} else {
			used.Insert(uses(event)...)
		}
	}
	problems := undeclared(events)
	fmt.Printf("privileges: of %d requests of the daemon %d were denied, all by what tests did: %t\n", len(events), refused, len(problems) == 0)
	if all {
		problems = append(problems, unused(used)...)
	}
	return errors.Join(problems...)
}

// allTestsRun tells whether no test was left out.
func allTestsRun() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && !testing.Short()
}

// unused returns what is granted and not used.
func unused(used sets.Set[string]) (problems []error) {
	all := sets.New[string]()
	for _, namespace := range []string{metav1.NamespaceDefault, daemonName, metav1.NamespaceSystem} {
		got, err := grantedTo(daemonName, namespace)
		if err != nil {
			return []error{err}
		}
		any, err := grantedTo("default", namespace)
		if err != nil {
			return []error{err}
		}
		all = all.Union(got.Difference(any))
	}
	for _, grant := range sets.List(all.Difference(used)) {
		if mayBeUnused[grant] == "" {
			problems = append(problems, fmt.Errorf("the daemon may %s, and never did in any test: take it out of the manifests, or say in privileges_test.go why it stays", grant))
		}
	}
	for grant := range mayBeUnused {
		if !all.Has(grant) {
			problems = append(problems, fmt.Errorf("privileges_test.go says why the daemon may %s, which it may not", grant))
		}
	}
	fmt.Printf("privileges: %d grants, %d of them used\n", len(all), len(all.Intersection(used)))
	return problems
}

// uses spells out, as [grants] does, of which grants a request may have made use.
func uses(event auditv1.Event) []string {
	ref := event.ObjectRef
	if ref == nil {
		return nil
	}
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	return append(grants([]string{ref.APIGroup}, []string{resource}, nil, []string{event.Verb}),
		grants([]string{ref.APIGroup}, []string{resource}, []string{ref.Name}, []string{event.Verb})...)
}

// TestFinalizersMayBeUpdated takes from the daemon what it never asks for, but admission
// asks for whoever creates what blocks the deletion of its owner.
func TestFinalizersMayBeUpdated(t *testing.T) {
	ns := newNamespace(t)
	provokeDenials(t, func(event auditv1.Event) bool {
		return strings.Contains(event.ResponseStatus.Message, "cannot set blockOwnerDeletion")
	})
	freeLease(t)
	grant := revokeFromDaemon(t, foos.may("update", "/finalizers"))
	r := startReplica(t).ready()
	foos.create(t, ns, "a", 1)
	foos.waitSays(t, ns, "a", "Stalled", "WriteDenied", "cannot set blockOwnerDeletion")
	grant()
	foos.waitReady(t, ns, "a", 1)
	r.stop()
}

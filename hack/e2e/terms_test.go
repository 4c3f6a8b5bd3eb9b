// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/leaders"
)

// TestManyTermsOfOneProcess takes the Lease away from a process 260 times. Each time it
// leads again, and the later 200 terms leave nothing behind.
func TestManyTermsOfOneProcess(t *testing.T) {
	ns := newNamespace(t)
	foos.create(t, ns, "a", 1)
	d := startDaemons(t, 1, false)
	r, token := d.replicas[d.members[0].program], debugger(t, ns)
	foos.waitReady(t, ns, "a", 1)
	terms := 0
	lose := func(more int) {
		for range more {
			d.waitLeader()
			terms++
			// Deleted, it would be another object each time, and client-go remembers the last
			// 4096 that there were Events of.
			d.patchLease(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`)
			waitUntil(t, "the process leads again", func(context.Context) error {
				epochs := d.check().Epochs
				if len(epochs) <= terms || epochs[len(epochs)-1].End != leaders.Lasts {
					return fmt.Errorf("there are %d terms", len(epochs))
				}
				return nil
			})
		}
	}
	lose(60) // until what grows once has grown
	before := r.usage(token)
	lose(200)
	after := r.usage(token)
	t.Logf("after %d terms %.0f goroutines and %.1f MB of heap, after %d %.0f and %.1f",
		terms-200, before.goroutines, before.heap/1e6, terms, after.goroutines, after.heap/1e6)
	if after.goroutines > before.goroutines*1.05 || after.heap > before.heap*1.05 {
		t.Error("want at most 5 % more")
	}
	foos.patch(t, ns, "a", `{"spec":{"replicas":2}}`)
	foos.waitReady(t, ns, "a", 2)
	d.members[0].stop()
	d.wantNoRelist()
}

// usage is what a process takes.
type usage struct{ goroutines, heap float64 }

// usage returns what the replica takes after garbage was collected.
func (r *replica) usage(token string) usage {
	r.t.Helper()
	get := func(path string) string {
		code, body, err := r.getAs(r.t.Context(), token, path)
		if err != nil || code != http.StatusOK {
			r.t.Fatalf("%s: %d %v", path, code, err)
		}
		return body
	}
	// What has a finalizer, or is in a pool, goes later, and what is being worked on
	// comes and goes: the least is what stays.
	u := usage{heap: math.Inf(1)}
	for range 5 {
		u.heap = min(u.heap, number(r.t, get("/debug/pprof/heap?gc=1&debug=1"), "# HeapAlloc = "))
	}
	u.goroutines = number(r.t, get("/metrics"), "go_goroutines ")
	return u
}

// number returns the number that follows a prefix of a line.
func number(t *testing.T, text, prefix string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, prefix); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("no line %q", prefix)
	return 0
}

// debugger returns a token of somebody who may see all that the daemon serves, and set
// what can be set.
func debugger(t *testing.T, ns string) string {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: ns, Name: "debugger"}
	if _, err := kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-debugger"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"get", "put"}}},
	}
	if _, err := kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: meta.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := kube.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

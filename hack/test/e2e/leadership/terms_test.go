// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/leaders"
)

// TestManyTermsLeakNothing takes the Lease away from a process again and again. The process leads again each time with
// the caches that it has kept. In long mode, the last 100 terms leak nothing.
func TestManyTermsLeakNothing(t *testing.T) {
	first, last := framework.Count(40, 1), framework.Count(100, 2)
	ns := framework.NewNamespace(t)
	framework.Foos.Create(t, ns, "a", 1)
	// Its caches must not grow with the objects of other tests.
	f := startFleet(t, 1, false, append(slices.Clone(shortFaults), "--namespace="+ns)...)
	r, token := f.members[0].Replica, framework.DebuggerToken(t, ns)
	framework.Foos.WaitReady(t, ns, "a", 1)
	terms := 0
	lose := func(more int) {
		for range more {
			f.waitLeader()
			terms++
			// Not deleted: each time the Lease would be a new object, and client-go remembers
			// the last 4096 objects with Events.
			f.patchLease(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`)
			clustertest.WaitUntil(t, "the process leads again", func(context.Context) error {
				epochs := f.check().Epochs
				if len(epochs) <= terms || epochs[len(epochs)-1].End != leaders.Lasts {
					return fmt.Errorf("%d terms so far", len(epochs))
				}
				return nil
			})
		}
	}
	lose(first) // until one-time growth is over
	before := usageOf(r, token)
	lose(last)
	clustertest.WaitUntil(t, "the process uses at most 5% more than before", func(context.Context) error {
		after := usageOf(r, token)
		used := fmt.Sprintf("after %d terms %.0f goroutines and %.1f MB of heap, after %d %.0f and %.1f",
			terms-last, before.goroutines, before.heap/1e6, terms, after.goroutines, after.heap/1e6)
		if !testing.Short() && (after.goroutines > before.goroutines*1.05 || after.heap > before.heap*1.05) {
			return errors.New(used) // on a busy machine, what was in use for a while is freed later
		}
		t.Log(used)
		return nil
	})
	framework.Foos.Patch(t, ns, "a", `{"spec":{"replicas":2}}`)
	framework.Foos.WaitReady(t, ns, "a", 2)
	f.members[0].Stop()
	f.wantNoRelist()
}

// usage is the resource usage of a process.
type usage struct{ goroutines, heap float64 }

// usageOf returns the replica's usage after garbage collection.
func usageOf(r *framework.Replica, token string) usage {
	r.T.Helper()
	get := func(path string) string {
		code, body, err := r.GetAs(r.T.Context(), token, path)
		if err != nil || code != http.StatusOK {
			r.T.Fatalf("%s: %d %v", path, code, err)
		}
		return body
	}
	// Objects with finalizers and in pools are freed later, and work in progress varies. The
	// minimum is what stays.
	u := usage{math.Inf(1), math.Inf(1)}
	for range 5 {
		u.heap = min(u.heap, number(r.T, get("/debug/pprof/heap?gc=1&debug=1"), "# HeapAlloc = "))
		u.goroutines = min(u.goroutines, number(r.T, get("/metrics"), "go_goroutines "))
	}
	return u
}

// number returns the number after a prefix of a line.
func number(t *testing.T, text, prefix string) float64 {
	t.Helper()
	_, value, found := strings.Cut("\n"+text, "\n"+prefix)
	value, _, _ = strings.Cut(value, "\n")
	number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if !found || err != nil {
		t.Fatalf("no line %q: %v", prefix, err)
	}
	return number
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/testkit"
	"samplecontroller.io/controller-manager/reconcile"
)

const (
	// soon is how soon a delayed key must be due for Settle to wait for it.
	soon = time.Second
	// limit is the maximum time to wait. In a bubble, waiting takes no time.
	limit = 2 * time.Minute
	// pause is the polling interval. quiet is how long a real API server must get no requests:
	// Events, for example, are sent some time after their sync.
	pause, quiet = 10 * time.Millisecond, 300 * time.Millisecond

	leaseNamespace = metav1.NamespaceSystem
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Settle waits until the controllers are idle: the caches are in sync with the API server, no
// sync runs or waits, and none is due within a second. So a key that fails is tried about
// eight times. If the process does not lead, Settle waits only for the caches. The test ends
// if the controllers are not idle after two minutes.
func (e *Env) Settle() {
	e.t.Helper()
	e.until("become idle", e.busy)
}

// LoseLead gives the Lease to another holder, and waits until the process no longer leads.
// Running syncs continue, but their writes are rejected.
func (e *Env) LoseLead() {
	e.t.Helper()
	e.hold("another", 24*60*60)
	e.until("lose the lead", func() string {
		if e.leading() == nil {
			return "it still leads"
		}
		return ""
	})
}

// Lead takes the Lease from any other holder, and waits until the process leads.
func (e *Env) Lead() {
	e.t.Helper()
	e.hold("", 1)
	e.until("lead", func() string {
		if err := e.leading(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// AllowDeletions lets a controller delete without a limit for 10 minutes, as an operator does whose
// program has the flag --max-deletions-per-minute.
func (e *Env) AllowDeletions(controller string) {
	e.t.Helper()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for _, c := range e.contexts {
		if c.Name() == controller {
			testkit.AllowDeletions(c)
			return
		}
	}
	e.t.Fatalf("there is no controller %s", controller)
}

// hold gives the Lease to another holder, if there is a Lease. "" means no holder.
func (e *Env) hold(holder string, seconds int64) {
	e.t.Helper()
	if holder == "" && e.leading() == nil {
		return
	}
	patch := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d}}`, holder, seconds)
	_, err := e.client(leases, leaseNamespace).Patch(e.t.Context(), e.lease, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil && holder != "" {
		e.t.Fatalf("giving the Lease to another holder: %v", err)
	}
}

// leading returns nil if the process leads, otherwise the reason why not.
func (e *Env) leading() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.context == nil {
		return fmt.Errorf("no controller has been made")
	}
	return testkit.Leading(e.context)
}

// until waits until busy returns "". Otherwise it ends the test with the message that the
// program did not reach done.
func (e *Env) until(done string, busy func() string) {
	e.t.Helper()
	last := time.Now() // last time it was busy: an event enqueues a key some time after the cache has the object
	for deadline := last.Add(limit); ; time.Sleep(pause) {
		e.wait()
		why := busy()
		if why != "" {
			last = time.Now()
		} else if e.real && time.Since(last) < quiet {
			continue
		}
		select {
		case <-e.ended:
			e.t.Fatalf("the program has ended: %v", e.err)
		default:
		}
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("the program did not %s within %v: %s", done, limit, why)
		}
	}
}

// busy describes what the program is doing, or returns "" if it is idle.
func (e *Env) busy() string {
	if e.real {
		if why := e.late(); why != "" {
			return why
		}
	}
	if e.leading() != nil {
		return ""
	}
	e.mutex.Lock()
	controllers, c := e.controllers, e.context
	e.mutex.Unlock()
	for _, one := range controllers {
		if why := busy(one); why != "" && !testkit.SwitchedOff(c, one.Name()) {
			return one.Name() + " " + why
		}
	}
	return ""
}

// busy describes what a controller is doing. It returns "" if the controller is idle or has no
// loops.
func busy(c controller.Controller) string {
	looper, ok := c.(supervisor.Looper)
	if !ok {
		return ""
	}
	for _, loop := range looper.Loops() {
		p := loop.Progress(1)
		describe := func(entries reconcile.Entries) string {
			first := entries.First[0]
			if first.Error != "" {
				return fmt.Sprintf("%s, which failed: %s", first.Key, first.Error)
			}
			return first.Key
		}
		switch {
		case !p.Working && p.Blocker != nil:
			return fmt.Sprintf("has not started: %v", p.Blocker)
		case !p.Working:
			return "has not started"
		case p.Running.Total > 0:
			return "syncs " + describe(p.Running)
		case p.Waiting.Total > 0:
			return "is about to sync " + describe(p.Waiting)
		case p.Delayed.Total > 0 && time.Until(p.Delayed.First[0].Time) < soon:
			return "will soon sync " + describe(p.Delayed)
		}
	}
	return ""
}

// late returns which cache is behind a real API server, or that a request was sent just now.
// In a bubble, the caches are in sync when it is idle.
func (e *Env) late() string {
	e.mutex.Lock()
	c := e.context
	e.mutex.Unlock()
	e.recorder.mutex.Lock()
	last, read := e.recorder.last, maps.Clone(e.recorder.read)
	e.recorder.mutex.Unlock()
	if time.Since(last) < quiet {
		return "has just sent a request"
	}
	for resource, what := range read {
		namespace, selector, _ := strings.Cut(what, "?")
		list, err := e.client(resource, namespace).List(e.t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			continue // do not wait for a resource that cannot be read
		}
		if !holds(testkit.Versions(c.Informers(), resource), list.Items) {
			return "has not yet seen all " + resource.Resource
		}
	}
	return ""
}

// holds reports whether the cache contains exactly these objects.
func holds(cached map[cache.ObjectName]string, objects []unstructured.Unstructured) bool {
	for _, o := range objects {
		if cached[cache.MetaObjectToName(&o)] != o.GetResourceVersion() {
			return false
		}
	}
	return len(cached) == len(objects)
}

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
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/supervisor"
)

const (
	// soon is how near the time of a key is that Settle waits for.
	soon = time.Second
	// limit is how long anything is waited for. In a bubble it takes no time.
	limit = 2 * time.Minute
	// pause is the time between two looks, and quiet how long nothing must have been sent
	// to a real API server: Events, for example, are sent some time after their sync.
	pause, quiet = 10 * time.Millisecond, 300 * time.Millisecond

	leaseNamespace = metav1.NamespaceSystem
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Settle waits until the controllers are idle: the caches hold what the API server has, no sync
// runs or waits, and none is due within a second. A key that fails is therefore tried about
// eight times. While the process does not lead, only the caches are waited for. The test
// ends if the controllers are not idle after two minutes.
func (e *Env) Settle() {
	e.t.Helper()
	e.until("become idle", e.busy)
}

// LoseLead gives the Lease to another holder and waits until the process has noticed. Syncs
// that run go on, but their writes are refused.
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

// Lead takes the Lease away from another holder, and waits until the process leads.
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

// hold makes another than the process hold the Lease, if there is a Lease; "" is nobody.
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

// leading returns why the process does not lead, nil if it does.
func (e *Env) leading() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.context == nil {
		return fmt.Errorf("no controller has been made")
	}
	return e.context.Leading()
}

// until waits until busy returns nothing, and says otherwise what the program should have done.
func (e *Env) until(done string, busy func() string) {
	e.t.Helper()
	last := time.Now() // busy; what an informer delivers enqueues a key some time after the cache has it
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

// busy says what the program is at, "" if it is idle.
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
	controllers := e.controllers
	e.mutex.Unlock()
	for _, c := range controllers {
		if why := busy(c); why != "" {
			return c.Name() + " " + why
		}
	}
	return ""
}

// busy says what a controller is at, "" if it is idle or made of something else than loops.
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

// late says which cache does not hold what a real API server has, or that something was sent
// just now. In a bubble a cache has it when nothing happens any more.
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
			continue // it cannot be read, so there is nothing to wait for
		}
		if !holds(c.Informers().Versions(resource), list.Items) {
			return "has not yet seen all " + resource.Resource
		}
	}
	return ""
}

// holds tells whether a cache has these objects, and no others.
func holds(cached map[cache.ObjectName]string, objects []unstructured.Unstructured) bool {
	for _, o := range objects {
		if cached[cache.MetaObjectToName(&o)] != o.GetResourceVersion() {
			return false
		}
	}
	return len(cached) == len(objects)
}

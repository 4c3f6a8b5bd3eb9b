// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// late is how late the daemon sees what happens to the objects of one resource.
const late = 10 * time.Second

// TestOwnWritesAreReadThroughALateWatch has the daemon not see what it has created,
// and Foos that are touched all the time wake it.
func TestOwnWritesAreReadThroughALateWatch(t *testing.T) {
	ns := newNamespace(t)
	scraper := token(t, newNamespace(t), "sample-controller-manager-metrics-reader")
	delayer := startDelayer(t, "/apis/apps/v1/deployments")
	server := startDaemon(t, "--kubeconfig="+delayer.kubeconfig(t))
	names := []string{"a", "b", "c", "d", "e"}
	before := staleSyncs(t, server, scraper)
	delayer.by(late)
	for _, name := range names {
		createFoo(t, ns, name, 1)
	}
	keepTouching(t, ns, names)
	for _, name := range names {
		waitCondition(t, ns, name, "Reconciling", "Progressing")
		beReady(t, ns, name)
	}
	begin := time.Now()
	for _, name := range names {
		waitCondition(t, ns, name, "Ready", "Available")
	}
	if took := time.Since(begin); took < late/2 {
		t.Errorf("the daemon saw after %v that Deployments are available: its watch was not late", took)
	}
	wantWritten(t, ns, names, map[string]int{"create deployments": 1, "patch foos/status": 2})
	stale := staleSyncs(t, server, scraper) - before
	if stale < len(names) {
		t.Errorf("%d syncs were put off for a late cache, want at least one for each Foo", stale)
	}
	t.Logf("%d syncs were put off", stale)
}

// TestRefusedWriteIsNotRepeatedThroughALateWatch has the daemon not see what others
// have written.
func TestRefusedWriteIsNotRepeatedThroughALateWatch(t *testing.T) {
	ns := newNamespace(t)
	delayer := startDelayer(t, "/apis/apps/v1/deployments")
	startDaemon(t, "--kubeconfig="+delayer.kubeconfig(t))
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		createFoo(t, ns, name, 1)
		waitCondition(t, ns, name, "Reconciling", "Progressing")
	}
	keepTouching(t, ns, names)
	delayer.by(late)
	for _, name := range names {
		kubectl(t, "-n", ns, "label", "deployment", name, "team=blue")
		kubectl(t, "-n", ns, "scale", "foo", name, "--replicas=3")
	}
	for _, name := range names {
		waitReplicas(t, ns, name, 3)
		waitCondition(t, ns, name, "Reconciling", "Progressing")
	}
	wantWritten(t, ns, names, map[string]int{"create deployments": 1, "patch deployments": 1, "patch foos/status": 2})
}

// TestGoneFooIsGivenNothingThroughALateWatch has the daemon see that a Deployment is
// gone before it sees that its Foo is.
func TestGoneFooIsGivenNothingThroughALateWatch(t *testing.T) {
	ns := newNamespace(t)
	delayer := startDelayer(t, "/apis/samplecontroller.k8s.io/v1alpha1/foos")
	startDaemon(t, "--kubeconfig="+delayer.kubeconfig(t))
	want := []string{"create deployments", "patch foos/status"}
	createFoo(t, ns, "a", 1)
	waitCondition(t, ns, "a", "Reconciling", "Progressing")
	beReady(t, ns, "a")
	waitCondition(t, ns, "a", "Ready", "Available")
	want = append(want, "patch foos/status")
	createFoo(t, ns, "later", 1) // when it is served, the cache has all that there was before
	waitCondition(t, ns, "later", "Reconciling", "Progressing")
	want = append(want, "create deployments", "patch foos/status")

	delayer.by(late)
	for _, kind := range []string{"foo", "deployment"} {
		kubectl(t, "-n", ns, "delete", kind, "a")
	}
	createFoo(t, ns, "last", 1) // when it is served, the cache has that as well
	waitCondition(t, ns, "last", "Reconciling", "Progressing")
	want = append(want, "list foos", "create deployments", "patch foos/status")
	wantCalls(t, ns, want...)
}

// keepTouching changes Foos every 100 ms, in a way that asks for nothing, until the
// test ends.
func keepTouching(t *testing.T, ns string, names []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	for _, name := range names {
		touching.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_ = patchFoo(ctx, ns, name, fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i)) // only that it wakes matters
				time.Sleep(100 * time.Millisecond)                                                           // not a ticker, which would make up for slow calls by quick ones
			}
		})
	}
	t.Cleanup(func() {
		stop()
		touching.Wait()
	})
}

// wantWritten compares how many writes foo-controller has made for each of the Foos,
// whose Deployments are their namesakes. At most two were refused, because the Foo or
// the Deployment had just been changed.
func wantWritten(t *testing.T, ns string, names []string, want map[string]int) {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent("foo-controller"), cluster.InNamespace(ns), isWrite)
	if err != nil {
		t.Fatal(err)
	}
	written, refused := map[string]map[string]int{}, map[string]int{}
	for _, event := range events {
		name, call := event.ObjectRef.Name, cluster.Call(event)
		switch code := event.ResponseStatus.Code; {
		case code == http.StatusConflict && event.Verb != "create":
			refused[name]++
		case code >= 300:
			t.Errorf("%s %s was refused with %d", call, name, code)
		case written[name] == nil:
			written[name] = map[string]int{call: 1}
		default:
			written[name][call]++
		}
	}
	for _, name := range names {
		if diff := cmp.Diff(want, written[name]); diff != "" {
			t.Errorf("unexpected writes for Foo %s (-want +got):\n%s", name, diff)
		}
		if refused[name] > 2 {
			t.Errorf("%d writes for Foo %s were refused, want at most 2", refused[name], name)
		}
	}
	t.Logf("refused: %v", refused)
}

// staleSyncs returns how many syncs were put off, since the process began, because a
// cache was late.
func staleSyncs(t *testing.T, server *apptesting.Server, token string) int {
	t.Helper()
	body := get(t, server, "/metrics", token, http.StatusOK)
	match := regexp.MustCompile(`(?m)^sample_controller_manager_sync_total\{controller="foo-controller",result="stale"\} (\d+)$`).FindStringSubmatch(body)
	if match == nil {
		t.Fatal("they are not counted")
	}
	total, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestSummaryIsWrittenAtMostOncePerInterval changes a Pod of each kind all the time.
func TestSummaryIsWrittenAtMostOncePerInterval(t *testing.T) {
	const interval = 4 * time.Second
	all := sideBySide(t)
	flag := "--status-aggregation-interval=" + interval.String()
	server := startDaemon(t, flag)
	pods := map[string]*corev1.Pod{}
	for _, k := range all {
		rs := k.createServed(t, k.ns, "a")
		pods[k.Kind] = createPod(t, k.ns, "a", "node-1", k.labels("a"), controlledBy(rs))
	}
	var restarts int32
	for begin := time.Now(); time.Since(begin) < 2*interval+interval/2; time.Sleep(50 * time.Millisecond) {
		restarts++
		for _, k := range all {
			pods[k.Kind] = setPod(t, pods[k.Kind], restarted(restarts))
		}
	}
	written := map[string]int{}
	for _, k := range all {
		k.waitRestarts(t, k.ns, "a", restarts)
		changes, writes := podChanges(t, k.ns, "a"), k.summaryWrites(t, k.ns, "a")
		written[k.Kind] = len(writes)
		first, last := changes[0], changes[len(changes)-1]
		t.Logf("%s: written at %v, %d changes of the Pod in %v", k.Kind, after(first, writes), len(changes), last.Sub(first))
		// That the first change is written at once, and the others after one interval, is tested
		// in pkg/controller/statusaggregator, where a busy machine adds no delay.
		if len(writes) < 2 {
			t.Errorf("the status of the %s was written %d times, want once per interval", k.Kind, len(writes))
		}
		for i := 1; i < len(writes); i++ {
			if gap := writes[i].Sub(writes[i-1]); gap < interval {
				t.Errorf("two writes of the %s came within %v, want at least %v", k.Kind, gap, interval)
			}
		}
	}

	// A change that does not affect the status is not written.
	touch := func() {
		for _, k := range all {
			k.annotate(t, k.ns, "a")
			patch := []byte(`{"metadata":{"annotations":{"touched":"true"}}}`)
			if _, err := shared.Kube().CoreV1().Pods(k.ns).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	touch()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, flag)
	touch()
	time.Sleep(interval + time.Second) // no writes may follow
	for _, k := range all {
		if more := len(k.summaryWrites(t, k.ns, "a")) - written[k.Kind]; more > 0 {
			t.Errorf("the status of the %s was written %d times without a change of the summary", k.Kind, more)
		}
		k.wantNoTimes(t, k.ns, "a")
		// The daemon still works.
		restarts++
		setPod(t, getPod(t, k.ns, "a"), restarted(restarts))
		k.waitRestarts(t, k.ns, "a", restarts)
	}
}

// TestEachChangeIsWrittenWithoutAnInterval changes a Pod again after each write.
func TestEachChangeIsWrittenWithoutAnInterval(t *testing.T) {
	all := sideBySide(t)
	startDaemon(t, "--status-aggregation-interval=0")
	for _, k := range all {
		rs := k.createServed(t, k.ns, "a")
		k.waitPods(t, k.ns, "a", "none") // there is no grace period either
		pod := createPod(t, k.ns, "a", "node-1", k.labels("a"), controlledBy(rs))
		k.waitPods(t, k.ns, "a", "1/1 ready on node-1")
		before := len(k.summaryWrites(t, k.ns, "a"))
		const changes = 20
		begin := time.Now()
		for i := range int32(changes) {
			pod = setPod(t, pod, restarted(i+1))
			k.waitRestarts(t, k.ns, "a", i+1)
		}
		if got := len(k.summaryWrites(t, k.ns, "a")) - before; got != changes {
			t.Errorf("%d changes were written %d times", changes, got)
		}
		t.Logf("%s: %d changes were written within %v", k.Kind, changes, time.Since(begin))
	}
}

// summaryWrites returns the times of the aggregator's writes of the object's status. None
// of them may have been refused.
func (k kind) summaryWrites(t *testing.T, ns, name string) (at []time.Time) {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(aggregator), cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return cluster.Call(event) == k.patchStatus() && event.ObjectRef.Name == name
	})
	for _, event := range events {
		if event.ResponseStatus.Code != http.StatusOK {
			t.Errorf("a write of the status of %s %s was refused with %d", k.Kind, name, event.ResponseStatus.Code)
		}
		at = append(at, event.RequestReceivedTimestamp.Time)
	}
	return at
}

// podChanges returns the times of the API server's responses to writes of a Pod's status.
func podChanges(t *testing.T, ns, name string) (at []time.Time) {
	t.Helper()
	events := shared.Audit(t, cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return cluster.Call(event) == "update pods/status" && event.ObjectRef.Name == name
	})
	for _, event := range events {
		at = append(at, event.StageTimestamp.Time)
	}
	return at
}

// wantNoTimes checks that the Pod summary in the status has no times.
func (k kind) wantNoTimes(t *testing.T, ns, name string) {
	t.Helper()
	pods := kubectl(t, "-n", ns, "get", k.Singular, name, "-o", "jsonpath={.status.pods}")
	if pods == "" || regexp.MustCompile(`(?i)\d\d:\d\d:\d\d|time`).MatchString(pods) {
		t.Errorf("status.pods = %s, want no times in it", pods)
	}
}

func after(begin time.Time, times []time.Time) (passed []time.Duration) {
	for _, at := range times {
		passed = append(passed, at.Sub(begin).Round(time.Millisecond))
	}
	return passed
}

func getPod(t *testing.T, ns, name string) *corev1.Pod {
	t.Helper()
	pod, err := shared.Kube().CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

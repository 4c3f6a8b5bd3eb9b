// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// aggregationInterval is the default of --status-aggregation-interval.
const aggregationInterval = time.Second

// TestStatusesAfterChurn has Pods of 50 Foos and 50 Icecreams deleted at random,
// Nodes drained and replicas scaled. In the end every status says what is there, every
// placement was logged once, and it has not cost more than it may.
func TestStatusesAfterChurn(t *testing.T) {
	framework.Long(t)
	const count = 50
	ns := framework.NewNamespace(t)
	framework.FreeLease(t)
	r := framework.StartReplica(t, "-v=0").Ready() // the default verbosity
	framework.WaitLeader(t, "")
	pods := framework.Record[*corev1.Pod](t, framework.Kube().CoreV1().Pods(ns).Watch)
	for i := range count {
		createBoth(t, ns, fmt.Sprintf("x-%d", i), int32(1+i%3))
	}
	waitStatuses(t, ns, count)
	churn(t, ns, count)
	waitStatuses(t, ns, count)

	wantLoggedOnce(t, r.Log, ns, pods)
	wantPaced(t, ns)
	wantFewConflicts(t, ns)
	r.Stop()
	framework.WantNoDenials(t)
}

// createBoth makes a Foo and an Icecream of one name, whose Deployments are named
// after their kinds too.
func createBoth(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	metadata := metav1.ObjectMeta{Name: name}
	foo := &samplev1alpha1.Foo{ObjectMeta: metadata, Spec: samplev1alpha1.FooSpec{DeploymentName: name + "-foo", Replicas: &replicas}}
	if _, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), foo, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	icecream := &icecreamv1alpha1.Icecream{ObjectMeta: metadata, Spec: icecreamv1alpha1.IcecreamSpec{DeploymentName: name + "-icecream", Replicas: &replicas}}
	if _, err := framework.Sample().IcecreamV1alpha1().Icecreams(ns).Create(t.Context(), icecream, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// churn disturbs the objects for a while, in three ways at once.
func churn(t *testing.T, ns string, count int) {
	t.Helper()
	const (
		scalings  = 150
		deletions = 150
	)
	var disturbing sync.WaitGroup
	disturb := func(times int, do func(random *rand.Rand) error) {
		random := rand.New(rand.NewPCG(uint64(times), 1))
		disturbing.Go(func() {
			for range times {
				if err := do(random); err != nil && t.Context().Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	disturb(scalings, func(random *rand.Rand) error {
		name, patch := fmt.Sprintf("x-%d", random.IntN(count)), fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, random.IntN(5))
		_, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return err
		}
		_, err = framework.Sample().IcecreamV1alpha1().Icecreams(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond) // a pace, nothing is waited for
		return err
	})
	disturb(deletions, func(random *rand.Rand) error {
		list, err := framework.Kube().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		err = framework.Kube().CoreV1().Pods(ns).Delete(t.Context(), list.Items[random.IntN(len(list.Items))].Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond) // a pace, nothing is waited for
		return err
	})
	node := 0
	disturb(3, func(*rand.Rand) error {
		node++
		name := fmt.Sprintf("node-%d", node)
		out, err := framework.Cluster().Kubectl(t.Context(), "drain", name, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		_, err = framework.Cluster().Kubectl(t.Context(), "uncordon", name)
		return err
	})
	disturbing.Wait()
}

// wantLoggedOnce checks that of each Pod of an Icecream that was ever placed one line
// was logged, with its node, and no other.
func wantLoggedOnce(t *testing.T, log fmt.Stringer, ns string, pods *framework.History[*corev1.Pod]) {
	t.Helper()
	nodes := map[string]string{}
	for _, c := range pods.Changes() {
		if c.Object.Spec.NodeName != "" && c.Object.Labels["app"] == "icecream" {
			nodes[c.Object.Name] = c.Object.Spec.NodeName
		}
	}
	lines := map[string]int{}
	for line := range strings.Lines(log.String()) {
		if _, said, ok := strings.Cut(line, `] "Pod scheduled" `); ok && strings.Contains(said, `pod="`+ns+"/") {
			lines[strings.TrimSpace(said)]++
		}
	}
	for pod, node := range nodes {
		said := 0
		for line, n := range lines {
			if strings.Contains(line, fmt.Sprintf("pod=%q node=%q", ns+"/"+pod, node)) {
				said += n
			}
		}
		if said != 1 {
			t.Errorf("%d lines were logged of Pod %s on %s, want one", said, pod, node)
		}
	}
	if len(lines) != len(nodes) {
		t.Errorf("%d lines were logged of %d placements", len(lines), len(nodes))
	}
	t.Logf("%d placements, %d lines", len(nodes), len(lines))
}

// wantPaced checks that the aggregator never wrote one object twice in an interval.
func wantPaced(t *testing.T, ns string) {
	t.Helper()
	events, err := framework.Cluster().AuditEvents(cluster.ByUserAgent("status-aggregator-controller"), cluster.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]auditv1.Event{}
	for _, event := range events {
		if event.ResponseStatus.Code != http.StatusOK {
			continue
		}
		object := event.ObjectRef.Resource + "/" + event.ObjectRef.Name
		if before, ok := last[object]; ok {
			if apart := event.RequestReceivedTimestamp.Sub(before.RequestReceivedTimestamp.Time); apart < aggregationInterval {
				t.Errorf("two writes of %s were only %v apart", object, apart)
			}
		}
		last[object] = event
	}
}

// wantFewConflicts checks that less than 5 % of status writes were refused because
// somebody else had written.
func wantFewConflicts(t *testing.T, ns string) {
	t.Helper()
	events, err := framework.Cluster().AuditEvents(cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return event.ObjectRef.Subresource == "status" && strings.HasPrefix(event.UserAgent, framework.DaemonName+"/")
	})
	if err != nil {
		t.Fatal(err)
	}
	written, conflicts := map[string]int{}, map[string]int{}
	all, refused := 0, 0
	for _, event := range events {
		controller := event.UserAgent[strings.LastIndex(event.UserAgent, "/")+1:]
		written[controller]++
		all++
		if event.ResponseStatus.Code == http.StatusConflict {
			conflicts[controller]++
			refused++
		}
	}
	if 20*refused >= all {
		t.Errorf("%d of %d status writes were refused with a conflict, want less than 5 %%", refused, all)
	}
	t.Logf("status writes %v, refused %v", written, conflicts)
}

// waitStatuses waits until every status says what an independent count of the Pods
// does.
func waitStatuses(t *testing.T, ns string, count int) {
	t.Helper()
	clustertest.WaitUntil(t, "every status tells the truth", func(ctx context.Context) error { return compareStatuses(ctx, ns, count) })
}

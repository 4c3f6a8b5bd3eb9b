// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

const (
	// deprived is the number of Foos whose writes are forbidden, and deprivedFor how long
	// to watch them at least.
	deprived    = 50
	deprivedFor = 15 * time.Second
	// mostRetries is how often the backoff retries each of them in that time.
	mostRetries = 7
	// mostBackoff is the longest backoff. healedWithin adds the time that a busy machine
	// needs, on which processes may even pause for a minute.
	mostBackoff  = 30 * time.Second
	healedWithin = mostBackoff + 90*time.Second
)

// TestMissingCreatePermissionBacksOff revokes the permission of a running daemon, and
// grants it again.
func TestMissingCreatePermissionBacksOff(t *testing.T) {
	ns := framework.NewNamespace(t)
	scraper := framework.TokenWith(t, framework.NewNamespace(t), "sample-controller-manager-metrics-reader")
	server := framework.StartDaemon(t)
	counts := countWrites(t, server, scraper, "create deployments", framework.Foos.Controller, "deployments.apps")
	grant := revoke(t, clustertest.Right{Verb: "create", Group: "apps", Resource: "deployments"})
	createDeprived(t, ns)
	counts.want(t, "denied", func(got int) bool { return got >= deprived })
	wantFewCalls(t, ns, "create deployments", framework.Foos.Controller)
	wantDegraded(t, server, framework.Foos.Controller, `may not create deployments.apps in namespace "`+ns+`"`)
	eachDeprived(t, ns, "has no condition, because the controller reports it", func(foo *samplev1alpha1.Foo) error {
		if len(foo.Status.Conditions) > 0 {
			return fmt.Errorf("conditions %+v", foo.Status.Conditions)
		}
		return nil
	})

	granted := grant()
	clustertest.WaitUntil(t, "all Foos have their Deployments", func(ctx context.Context) error {
		deployments, err := framework.Kube().AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(deployments.Items) != deprived {
			err = fmt.Errorf("%d of them have", len(deployments.Items))
		}
		return err
	})
	took := time.Since(granted)
	if took > healedWithin {
		t.Errorf("all have their Deployments %v after the grant, want %v at most", took, healedWithin)
	}
	eachDeprived(t, ns, "is Progressing", progressing)
	t.Logf("%d Foos had their Deployments %v after the grant, and their statuses after %v", deprived, took.Round(time.Millisecond), time.Since(granted).Round(time.Millisecond))
	counts.want(t, "written", func(got int) bool { return got >= deprived })
	counts.wantAsAudited(t)
	if got := server.Value(scraper, `sample_controller_manager_writes_total{controller="foo-controller",resource="deployments.apps",result="failed",verb="patch"}`); got != 0 {
		t.Errorf("%v patches failed, want 0", got)
	}

	// A sync without a difference counts as a skipped write.
	skipped := func(resource string) float64 {
		return server.Value(scraper, fmt.Sprintf("sample_controller_manager_writes_skipped_total{controller=%q,resource=%q}", framework.Foos.Controller, resource))
	}
	deployments, statuses := skipped("deployments.apps"), skipped("foos/status.samplecontroller.k8s.io")
	framework.Foos.Annotate(t, ns, "a-0")
	clustertest.WaitUntil(t, "a sync that writes nothing is counted", func(context.Context) error {
		if skipped("deployments.apps") <= deployments || skipped("foos/status.samplecontroller.k8s.io") <= statuses {
			return errors.New("no skipped write")
		}
		return nil
	})
}

// TestMissingStatusPermissionBacksOff revokes it from both controllers that write statuses.
func TestMissingStatusPermissionBacksOff(t *testing.T) {
	clustertest.Long(t)
	ns := framework.NewNamespace(t)
	scraper := framework.TokenWith(t, framework.NewNamespace(t), "sample-controller-manager-metrics-reader")
	server := framework.StartDaemon(t)
	var counts []writeCounts
	for _, controller := range []string{framework.Foos.Controller, framework.Aggregator} {
		counts = append(counts, countWrites(t, server, scraper, framework.Foos.PatchStatus(), controller, "foos/status.samplecontroller.k8s.io"))
	}
	grant := revoke(t, clustertest.Right{Verb: "patch", Group: framework.Foos.Group, Resource: "foos/status"})
	createDeprived(t, ns)
	for i := range deprived {
		framework.Foos.WaitReplicas(t, ns, fmt.Sprintf("a-%d", i), 1) // of its Deployment
	}
	wantFewCalls(t, ns, framework.Foos.PatchStatus(), framework.Foos.Controller, framework.Aggregator)
	for _, controller := range []string{framework.Foos.Controller, framework.Aggregator} {
		wantDegraded(t, server, controller, `may not patch foos/status.samplecontroller.k8s.io in namespace "`+ns+`"`)
	}
	eachDeprived(t, ns, "has no status", func(foo *samplev1alpha1.Foo) error {
		if len(foo.Status.Conditions) > 0 || foo.Status.Pods != nil {
			return fmt.Errorf("got %+v", foo.Status)
		}
		return nil
	})

	granted := grant()
	eachDeprived(t, ns, "is Progressing", progressing)
	took := time.Since(granted)
	if took > healedWithin {
		t.Errorf("all have their statuses %v after the grant, want %v at most", took, healedWithin)
	}
	eachDeprived(t, ns, "has a summary without Pods", func(foo *samplev1alpha1.Foo) error {
		if foo.Status.Pods == nil || foo.Status.Pods.Summary != "none" {
			return fmt.Errorf("got %+v", foo.Status.Pods)
		}
		return nil
	})
	t.Logf("%d Foos had their statuses %v after the grant, and their Pod summaries after %v", deprived, took.Round(time.Millisecond), time.Since(granted).Round(time.Millisecond))
	for _, c := range counts {
		c.want(t, "written", func(got int) bool { return got >= deprived })
		c.wantAsAudited(t)
	}
}

func createDeprived(t *testing.T, ns string) {
	t.Helper()
	for i := range deprived {
		framework.Foos.Create(t, ns, fmt.Sprintf("a-%d", i), 1)
	}
}

// eachDeprived waits until check returns nil for each of the Foos.
func eachDeprived(t *testing.T, ns, what string, check func(*samplev1alpha1.Foo) error) {
	t.Helper()
	clustertest.WaitUntil(t, "each Foo "+what, func(ctx context.Context) error {
		list, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != deprived {
			err = fmt.Errorf("got %d", len(list.Items))
		}
		for i := range list.Items {
			if err == nil {
				err = check(&list.Items[i])
			}
		}
		return err
	})
}

func progressing(foo *samplev1alpha1.Foo) error {
	if !meta.IsStatusConditionTrue(foo.Status.Conditions, "Reconciling") {
		return fmt.Errorf("conditions %+v", foo.Status.Conditions)
	}
	return nil
}

// wantFewCalls counts the calls of controllers in a namespace while they are denied.
func wantFewCalls(t *testing.T, ns, call string, controllers ...string) {
	t.Helper()
	begin, before := time.Now(), map[string]int{}
	for _, controller := range controllers {
		before[controller] = framework.CallsBy(t, controller, ns)[call]
	}
	time.Sleep(deprivedFor)
	for _, controller := range controllers {
		var got int
		clustertest.WaitUntil(t, fmt.Sprintf("%s tries %q again", controller, call), func(context.Context) error {
			if got = framework.CallsBy(t, controller, ns)[call] - before[controller]; got < deprived {
				return fmt.Errorf("%d calls for %d Foos", got, deprived)
			}
			return nil
		})
		lasted := time.Since(begin)
		t.Logf("%d calls %q of %s at first, %d in %v after that", before[controller], call, controller, got, lasted)
		if most := mostRetries * deprived * int(lasted/deprivedFor); got > most {
			t.Errorf("%d calls %q of %s for %d Foos in %v, want at most %d", got, call, controller, deprived, lasted, most)
		}
	}
}

// wantDegraded waits until the controller is Degraded for the reason.
func wantDegraded(t *testing.T, server *framework.Replica, controller, reason string) {
	t.Helper()
	v := framework.NewViewer(t, server)
	clustertest.WaitUntil(t, controller+" is Degraded", func(context.Context) error {
		var r debug.Report
		text := v.Page("/"+controller, &r)
		if c := r.Controllers[0]; c.State != "Degraded" || c.Reason != reason {
			return errors.New(text)
		}
		return nil
	})
}

// writeCounts are a daemon's counts of one call of a controller, by result.
type writeCounts struct {
	call, controller string
	begin            time.Time
	read             func(t *testing.T, result string) int
	before           map[string]int
}

// want waits until the count of a result is as wanted.
func (c writeCounts) want(t *testing.T, result string, wanted func(int) bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("calls %q of %s are counted as %s", c.call, c.controller, result), func(context.Context) error {
		if got := c.read(t, result) - c.before[result]; !wanted(got) {
			return fmt.Errorf("got %d", got)
		}
		return nil
	})
}

// wantAsAudited compares the counts with the API server's audit log. A call in flight may
// be missing in either.
func (c writeCounts) wantAsAudited(t *testing.T) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("calls %q of %s are counted as in the audit log", c.call, c.controller), func(context.Context) error {
		seen := c.audited(t)
		for _, result := range []string{"written", "conflict", "denied", "failed"} {
			if got := c.read(t, result) - c.before[result]; got != seen[result] {
				return fmt.Errorf("%d counted as %s, %d in the audit log", got, result, seen[result])
			}
		}
		return nil
	})
	t.Logf("calls %q of %s at the API server by result: %v", c.call, c.controller, c.audited(t))
}

// audited counts the calls in the audit log by result.
func (c writeCounts) audited(t *testing.T) map[string]int {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(c.controller), func(event auditv1.Event) bool {
		return cluster.Call(event) == c.call && event.RequestReceivedTimestamp.After(c.begin)
	})
	seen := map[string]int{}
	for _, event := range events {
		switch code := event.ResponseStatus.Code; {
		case code == http.StatusForbidden:
			seen["denied"]++
		case code == http.StatusConflict:
			seen["conflict"]++
		case code/100 == 2:
			seen["written"]++
		default:
			seen["failed"]++
		}
	}
	return seen
}

// countWrites counts from now on.
func countWrites(t *testing.T, server *framework.Replica, scraper, call, controller, resource string) writeCounts {
	t.Helper()
	verb, _, _ := strings.Cut(call, " ")
	c := writeCounts{call: call, controller: controller, before: map[string]int{}}
	c.read = func(t *testing.T, result string) int {
		t.Helper()
		return int(server.Value(scraper, fmt.Sprintf("sample_controller_manager_writes_total{controller=%q,resource=%q,result=%q,verb=%q}", controller, resource, result, verb)))
	}
	// Foos of other tests may be retried at this time.
	clustertest.WaitUntil(t, "the counts do not change while they are read", func(context.Context) error {
		c.begin = time.Now()
		for _, result := range []string{"written", "conflict", "refused", "denied", "failed"} {
			c.before[result] = c.read(t, result)
		}
		if seen := c.audited(t); len(seen) > 0 {
			return fmt.Errorf("got %v", seen)
		}
		return nil
	})
	return c
}

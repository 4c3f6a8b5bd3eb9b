// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

const (
	converged = 1000 // Foos
	drifted   = 200  // of their Deployments
)

// planned is what plan -o json prints.
type planned struct {
	Account           string
	Changes           []struct{ Verb, Resource, Name, Before, After, Controller string }
	FollowingStatuses int
	Unknown, Errors   []struct{ Message string }
}

// runPlan runs plan as a cluster admin.
func runPlan(t *testing.T, wantCode int) planned {
	t.Helper()
	began := time.Now()
	stdout, stderr, code := framework.RunCommand(t, "plan", "-o", "json", "--kubeconfig="+framework.Cluster().Kubeconfig)
	t.Logf("plan took %v", time.Since(began).Round(time.Millisecond))
	var p planned
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != wantCode {
		t.Fatalf("plan ended with %d, want %d: %v\n%.3000s\n%.3000s", code, wantCode, err, stdout, stderr)
	}
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, "Data race detection enabled") { // a build for this test says so before it starts
			t.Errorf("plan logs without -v: %.1000s", line)
		}
	}
	if p.Account != framework.DaemonUser || len(p.Unknown)+len(p.Errors) > 0 {
		t.Errorf("planned as %s, unknown %v, errors %v", p.Account, p.Unknown, p.Errors)
	}
	return p
}

// wantOnlyDryRuns checks that all writes of a program with this user agent were dry runs, and returns their number.
func wantOnlyDryRuns(t *testing.T, agent string) (n int) {
	t.Helper()
	for _, event := range framework.Audit(t, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, agent+"/") && !slices.Contains([]string{"get", "list", "watch"}, event.Verb)
	}) {
		if n++; !strings.Contains(event.RequestURI, "dryRun=All") {
			t.Errorf("%s %s was a real write", event.Verb, event.RequestURI)
		}
	}
	return n
}

// createConverged creates Foos and has a daemon and, by the test, the other controllers of a cluster do their work.
func createConverged(t *testing.T, ns string) (names []string) {
	t.Helper()
	server := framework.StartDaemon(t)
	for i := range converged {
		names = append(names, fmt.Sprintf("foo-%04d", i))
	}
	each := func(names []string, do func(name string)) {
		workqueue.ParallelizeUntil(t.Context(), 10, len(names), func(i int) { do(names[i]) })
	}
	each(names, func(name string) { framework.Foos.Create(t, ns, name, 1) })
	each(names, func(name string) {
		framework.WaitDeployment(t, ns, name)
		framework.BeReady(t, ns, name)
	})
	each(names, func(name string) { framework.Foos.WaitCondition(t, ns, name, "Ready", "Available") })
	clustertest.WaitUntil(t, "all Pods are summarized", func(ctx context.Context) error {
		list, err := framework.Foos.In(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if foo, err := framework.Foos.Read(&list.Items[i]); err != nil || foo.Status.Pods == nil {
				return fmt.Errorf("%s: %w", list.Items[i].GetName(), err)
			}
		}
		return nil
	})
	server.Stop()
	return names
}

// TestPlanAndShadow plans for converged Foos and after others have changed Deployments. Then a shadow runs beside
// leaders that do not, and that do, undo the changes.
func TestPlanAndShadow(t *testing.T) {
	framework.OwnAPIServer(t)
	ns := framework.NewNamespace(t)
	names := createConverged(t, ns)
	if p := runPlan(t, 0); len(p.Changes) > 0 || p.FollowingStatuses > 0 {
		t.Errorf("%d changes and %d statuses of converged objects: %v", len(p.Changes), p.FollowingStatuses, p.Changes)
	}
	for _, name := range names[:drifted] {
		_, err := framework.Kube().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	p := runPlan(t, 2)
	if len(p.Changes) != drifted {
		t.Errorf("%d changes, want %d", len(p.Changes), drifted)
	}
	for _, c := range p.Changes {
		if c.Verb != "patch" || c.Resource != "deployments.apps" || c.Controller != "foo-controller" || !slices.Contains(names[:drifted], c.Name) ||
			!strings.Contains(c.Before, "replicas: 3") || !strings.Contains(c.After, "replicas: 1") {
			t.Fatalf("got the change %+v", c)
		}
	}
	if n := wantOnlyDryRuns(t, framework.DaemonName+"-plan"); n < drifted {
		t.Errorf("%d dry runs, want at least %d", n, drifted)
	}
	stdout, _, code := framework.RunCommand(t, "plan", "--kubeconfig="+framework.Cluster().Kubeconfig, "--as=system:serviceaccount:default:nobody")
	if code != 1 || !strings.Contains(stdout, "not permitted to ") {
		t.Errorf("a plan without permissions ended with %d: %s", code, stdout)
	}
	shadowed(t)
}

// shadowed runs a shadow while Deployments of Foos differ.
func shadowed(t *testing.T) {
	t.Helper()
	leader := framework.StartDaemon(t, "--controllers=status-aggregator-controller")
	holder := framework.WaitLeader(t, "")
	shadow := framework.StartDaemon(t, "--shadow")
	const gauge = "sample_controller_manager_shadow_differences"
	wantDifferences := func(want float64) {
		t.Helper()
		clustertest.WaitUntil(t, fmt.Sprintf("the shadow has %v differences", want), func(context.Context) error {
			got := shadow.Value(gauge + `{controller="foo-controller",resource="deployments.apps"}`)
			if got != want {
				return fmt.Errorf("%v", got)
			}
			for line := range strings.Lines(shadow.GetPage("/metrics", shadow.Admin(), http.StatusOK)) {
				other := strings.HasPrefix(line, gauge+"{") && !strings.Contains(line, "deployments.apps")
				if other && !strings.HasSuffix(line, " 0\n") {
					return fmt.Errorf("the shadow would also write: %s", line) // a leader that is late may still do it
				}
			}
			return nil
		})
	}
	wantDifferences(drifted)
	shadow.GetPage("/healthz?verbose", shadow.Admin(), http.StatusOK, fmt.Sprintf("shadow: %d writes", drifted), "it never leads")
	shadow.GetPage(debug.Path, shadow.Admin(), http.StatusOK, "patch deployments.apps", "spec.replicas")
	if now := framework.Holder(t); now != holder {
		t.Errorf("%s leads, before the shadow %s did", now, holder)
	}
	leader.Stop()
	framework.StartDaemon(t)
	wantDifferences(0)
	if n := wantOnlyDryRuns(t, framework.DaemonName+"-shadow"); n < drifted {
		t.Errorf("%d dry runs, want at least %d", n, drifted)
	}
	shadow.GetPage("/healthz?verbose", shadow.Admin(), http.StatusOK, "shadow: 0 writes")
}

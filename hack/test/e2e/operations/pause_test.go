// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// lastCall returns when a client's last call of a kind in a namespace was answered.
func lastCall(t *testing.T, ns, client, call string) (at time.Time) {
	t.Helper()
	for _, event := range framework.Audit(t, cluster.InNamespace(ns)) {
		if strings.HasPrefix(event.UserAgent, client) && cluster.Call(event) == call {
			at = event.StageTimestamp.Time
		}
	}
	if at.IsZero() {
		t.Fatalf("%s has not sent %q in %s", client, call, ns)
	}
	return at
}

// TestPause pauses a Foo, and the namespace of an Icecream. Each time somebody scales the Deployment, and the leader
// dies. The daemon writes one status, and corrects the Deployment when it is resumed.
func TestPause(t *testing.T) {
	framework.FreeLease(t)
	flags := append(framework.OneWorker, "--concurrent-status-aggregator-syncs=1")
	r := framework.StartReplica(t, flags...).Ready()
	holder := framework.WaitLeader(t, "")
	admin := "--kubeconfig=" + framework.Cluster().Kubeconfig
	for _, test := range []struct {
		kind     framework.Kind
		reason   string
		annotate string
		argument func(ns string) []string
	}{
		{framework.Kinds[0], "PausedByAnnotation", "patch foos", func(ns string) []string { return []string{"foo", ns + "/a"} }},
		{framework.Kinds[1], "PausedByNamespace", "patch namespaces", func(ns string) []string { return []string{"namespace", ns} }},
	} {
		k, ns := test.kind, framework.NewNamespace(t)
		k.Create(t, ns, "a", 1)
		k.WaitReady(t, ns, "a", 1)
		k.WaitPodsReported(t, ns, "a", 1)
		want := framework.Requests(t, ns)
		wantPlugin(t, 0, `^Paused .* until it is resumed\.`, append(append([]string{"pause"}, test.argument(ns)...), admin)...)
		paused := k.WaitCondition(t, ns, "a", "Paused", test.reason)

		framework.Kubectl(t, "-n", ns, "scale", "deployment", "a", "--replicas=3")
		r.Kill()
		framework.FreeLease(t) // which would expire only in a minute
		r = framework.StartReplica(t, flags...).Ready()
		holder = framework.WaitLeader(t, holder)
		other := framework.NewNamespace(t) // what is created last is synced last
		k.Create(t, other, "barrier", 1)
		k.WaitReady(t, other, "barrier", 1)
		k.WaitPodsReported(t, other, "barrier", 1)
		want[k.PatchStatus()]++
		want["create events"]++
		got := framework.Requests(t, ns)
		maps.DeleteFunc(got, func(call string, _ int) bool { return strings.HasPrefix(call, "list ") })
		maps.DeleteFunc(want, func(call string, _ int) bool { return strings.HasPrefix(call, "list ") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests for a paused %s (-want +got):\n%s", k.Kind, diff)
		}
		if now := k.WaitCondition(t, ns, "a", "Ready", "Available"); now.ResourceVersion != paused.ResourceVersion {
			t.Errorf("the paused %s has been written", k.Kind)
		}
		wantPlugin(t, 0, `^`+k.Kind+` `+ns+`/a: Ready Available for \S+, 1 of 1 available\n    Paused by the annotation\n(.*\n)+1 of 1 objects are Ready\.\nPaused: 1\.\n$`, "objects", "-n", ns, admin)
		if page := "sample_controller_manager_paused_objects"; r.Value(page+`{controller="`+k.Controller+`"}`) < 1 {
			t.Errorf("%s does not count the paused %s", page, k.Kind)
		}

		wantPlugin(t, 0, `^Resumed .* The daemon corrects`, append(append([]string{"resume"}, test.argument(ns)...), admin)...)
		k.WaitReplicas(t, ns, "a", 1)
		k.WaitReady(t, ns, "a", 1)
		resumed := lastCall(t, ns, "kubectl-scm/", test.annotate)
		took := lastCall(t, ns, framework.DaemonName+"/", "patch deployments").Sub(resumed)
		t.Logf("the Deployment of a resumed %s was corrected %v after the annotation was removed", k.Kind, took)
		framework.WantSoon(t, "the correction", took, time.Second)
	}
	r.Stop()
}

// TestPauseInSingleNamespace serves one namespace, whose annotation is ignored; that of a Foo is not.
func TestPauseInSingleNamespace(t *testing.T) {
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	r := framework.StartReplica(t, "--namespace="+ns).Ready()
	framework.WaitLeader(t, "")
	r.WaitLog("Ignoring the pause annotation of the namespace, because --namespace is set")
	admin := "--kubeconfig=" + framework.Cluster().Kubeconfig
	wantPlugin(t, 0, `^Paused namespace `+ns, "pause", "ns", ns, admin)
	k := framework.Kinds[0]
	k.Create(t, ns, "a", 1)
	k.WaitReady(t, ns, "a", 1)
	wantPlugin(t, 0, `^Paused Foo `+ns+`/a until 20`, "pause", "foo/a", "-n", ns, "--for=1h", admin)
	k.WaitCondition(t, ns, "a", "Paused", "PausedByAnnotation")
	if value := r.Value("sample_controller_manager_pause_namespaces_readable"); value != 0 {
		t.Errorf("namespaces are readable: %v, want 0", value)
	}
	stdout, _, _ := framework.RunCommand(t, "preflight", admin, "--namespace="+ns, "--leader-elect-resource-namespace="+framework.DaemonName)
	if !strings.Contains(stdout, "pause ") || !strings.Contains(stdout, "SKIP     with --namespace, the annotation ") {
		t.Errorf("preflight has no row about pauses:\n%s", stdout)
	}
	// Other tests share the cluster, and list what is paused.
	wantPlugin(t, 0, `^Resumed .* The daemon corrects`, "resume", "namespace", ns, admin)
	wantPlugin(t, 0, `^Resumed .* The daemon corrects`, "resume", "foo", ns+"/a", admin)
	r.Stop()
}

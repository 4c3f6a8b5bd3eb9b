// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// install installs the base with components through a kustomization in the root of the
// repository. Nothing may cause a warning in its restricted namespace. The returned function
// removes what the other tests do not use.
func install(t *testing.T, kustomization string) (remove func()) {
	t.Helper()
	dir := overlay(t, kustomization)
	remove = func() {
		t.Helper()
		framework.Kubectl(t, "delete", "--ignore-not-found", "-n", framework.DaemonName, "deployment,service,pdb,networkpolicy", framework.DaemonName)
		framework.Kubectl(t, "delete", "--ignore-not-found", "-n", framework.DaemonName, "rolebinding", framework.DaemonName+"-lease-events")
		framework.Kubectl(t, "delete", "--ignore-not-found", "priorityclass", framework.DaemonName)
	}
	if out, err := framework.Cluster().Kubectl(t.Context(), "apply", "--warnings-as-errors", "-k", dir); err != nil {
		remove()
		t.Fatalf("%v\n%s", err, out)
	}
	return remove
}

// overlay writes a kustomization that finds the directory manifests beside it.
func overlay(t *testing.T, kustomization string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Symlink(framework.Manifests(t, ""), filepath.Join(dir, "manifests")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHighAvailabilitySpread adds Nodes so that most are in one zone. Spreading over Nodes
// alone would put all replicas there.
func TestHighAvailabilitySpread(t *testing.T) {
	zones := map[string]string{}
	for i, zone := range []string{"a", "a", "a", "a", "a", "a", "b", "c"} {
		zones[addNode(t, fmt.Sprintf("node-zone-%s-%d", zone, i), zone)] = zone
	}
	for node := range zones {
		clustertest.WaitUntil(t, node+" is ready", func(ctx context.Context) error {
			is, err := framework.Kube().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err == nil && len(is.Spec.Taints) > 0 {
				err = fmt.Errorf("has taints: %v", is.Spec.Taints)
			}
			return err
		})
	}
	defer install(t, "resources: [manifests/base]\ncomponents: [manifests/components/high-availability, manifests/components/network-policy]\n")()
	framework.Kubectl(t, "rollout", "status", "-n", framework.DaemonName, "deployment/"+framework.DaemonName, "--timeout=300s")

	pods, err := framework.Kube().CoreV1().Pods(framework.DaemonName).List(t.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + framework.DaemonName})
	if err != nil {
		t.Fatal(err)
	}
	onNodes, inZones := sets.New[string](), sets.New[string]()
	for _, pod := range pods.Items {
		if !slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey == corev1.LabelHostname && c.WhenUnsatisfiable == corev1.DoNotSchedule
		}) {
			t.Errorf("Pod %s may share a Node with another replica", pod.Name)
		}
		onNodes.Insert(pod.Spec.NodeName)
		inZones.Insert(zones[pod.Spec.NodeName])
		if ptr.Deref(pod.Spec.Priority, 0) != 1000000 {
			t.Errorf("Pod %s has priority %d", pod.Name, ptr.Deref(pod.Spec.Priority, 0))
		}
	}
	if len(pods.Items) != 3 || len(onNodes) != 3 || !inZones.Equal(sets.New("a", "b", "c")) {
		t.Errorf("%d replicas are on the Nodes %q in the zones %q, want 3 replicas on 3 Nodes in 3 zones", len(pods.Items), sets.List(onNodes), sets.List(inZones))
	}
	class, err := framework.Kube().SchedulingV1().PriorityClasses().Get(t.Context(), framework.DaemonName,
		metav1.GetOptions{})
	if err != nil || class.GlobalDefault {
		t.Errorf("PriorityClass %v (%v), want one that is not the global default", class, err)
	}
	clustertest.WaitUntil(t, "one replica may be evicted", func(ctx context.Context) error {
		budget, err := framework.Kube().PolicyV1().PodDisruptionBudgets(framework.DaemonName).Get(ctx, framework.DaemonName,
			metav1.GetOptions{})
		if err == nil && (budget.Status.ExpectedPods != 3 || budget.Status.DisruptionsAllowed != 1) {
			err = fmt.Errorf("of %d Pods %d may be evicted", budget.Status.ExpectedPods, budget.Status.DisruptionsAllowed)
		}
		return err
	})
}

// addNode adds a Node, simulated by kwok like the others, until the end of the test.
func addNode(t *testing.T, name, zone string) string {
	t.Helper()
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000")}
	_, err := framework.Kube().CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
			corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: zone, "type": "kwok"}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := framework.Kube().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return name
}

// TestOneNamespaceRoles installs what the manual shows for one namespace, and runs the daemon
// with only those rights. What such a daemon accesses is tested with two tenants.
func TestOneNamespaceRoles(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.FreeLease(t)
	defer installForOne(t, ns)()
	framework.WantGranted(t, ns, framework.ControllerRights(t))
	for _, other := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, framework.DaemonName} {
		framework.WantGranted(t, other, nil)
	}

	r := framework.StartReplica(t, "--namespace="+ns).Ready()
	framework.Foos.Create(t, ns, "foo", 2)
	framework.Foos.WaitReady(t, ns, "foo", 2)
	r.GetPage("/debug/controllers/foo-controller/elsewhere/foo", r.Admin(), http.StatusOK,
		fmt.Sprintf("\nnothing: this process serves only namespace %q\n", ns))
	stdout, _ := waitStatus(t, "--server="+r.URL, "--kubeconfig="+framework.Cluster().Kubeconfig, "--insecure-skip-tls-verify")
	if !strings.Contains(stdout, "\nServes: namespace "+ns+" only\n") {
		t.Errorf("status prints\n%s", stdout)
	}
	r.Stop()

	// Errors about missing rights name the namespace.
	framework.ExpectDenialsIn(ns)
	framework.Kubectl(t, "delete", "-n", ns, "rolebinding", framework.DaemonName+"-controllers")
	waitGranted(t, ns, "list pods", false)
	r = framework.StartReplica(t, "--namespace="+ns)
	for _, controller := range []string{framework.Foos.Controller, framework.Icecreams.Controller, framework.Aggregator} {
		r.WaitState(controller, "Degraded", "not permitted to watch ", fmt.Sprintf("in the namespace %q", ns))
	}
	r.Stop()
}

// installForOne installs the daemon to watch one namespace, with the kustomization in the
// manual, and removes its cluster-wide rights. The returned function restores them.
func installForOne(t *testing.T, ns string) (restore func()) {
	t.Helper()
	manual, err := os.ReadFile(framework.Manifests(t, "docs/configure.md"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization string
	for _, block := range regexp.MustCompile("(?s)```yaml\n# kustomization.yaml\n(.*?)```").FindAllStringSubmatch(string(manual), -1) {
		if strings.Contains(block[1], "components/single-namespace") {
			kustomization = strings.ReplaceAll(block[1], "team-a", ns)
		}
	}
	if kustomization == "" {
		t.Fatal("the manual shows no kustomization for one namespace")
	}
	remove := install(t, kustomization)
	framework.Kubectl(t, "delete", "clusterrolebinding", framework.DaemonName+"-controllers", framework.DaemonName+"-events")
	waitGranted(t, metav1.NamespaceDefault, "create events", false)
	return func() {
		remove()
		reinstall(t)
	}
}

// waitGranted waits until the API server has seen that the daemon may, or may not, do
// something.
func waitGranted(t *testing.T, ns, grant string, want bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("the daemon's right to %s in %s is %t", grant, ns, want), func(context.Context) error {
		if all := framework.Granted(t, framework.DaemonAccount, ns); all.Has(grant) != want {
			return fmt.Errorf("rights: %q", sets.List(all))
		}
		return nil
	})
}

// requestsOf returns the requests that a daemon sent as a user. It reports those that were
// denied, and if there is none at all.
func requestsOf(t *testing.T, user string, since time.Time) []auditv1.Event {
	t.Helper()
	events := framework.Audit(t, func(event auditv1.Event) bool {
		return event.User.Username == user && strings.HasPrefix(event.UserAgent, framework.DaemonName+"/") &&
			event.RequestReceivedTimestamp.After(since)
	})
	if len(events) == 0 {
		t.Errorf("%s sent no requests", user)
	}
	for _, event := range events {
		if framework.Denied(event) {
			t.Errorf("%s was denied to %s: %s", cluster.Call(event), user, event.ResponseStatus.Message)
		}
	}
	return events
}

// wantOnlyIn checks that a daemon accessed no other namespace, except for its Lease in its own
// and for authenticating its callers, and that it was denied nothing.
func wantOnlyIn(t *testing.T, user, own, ns string, since time.Time) {
	t.Helper()
	seen := sets.New[string]()
	for _, event := range requestsOf(t, user, since) {
		call := cluster.Call(event)
		if event.ObjectRef == nil {
			t.Errorf("unexpected request: %s", call)
			continue
		}
		if event.ObjectRef.Namespace == ns {
			seen.Insert(call)
			continue
		}
		switch call + " in " + event.ObjectRef.Namespace {
		case "create tokenreviews in ", "create subjectaccessreviews in ",
			"get configmaps in kube-system", "list configmaps in kube-system", "watch configmaps in kube-system",
			"get leases in " + own, "watch leases in " + own, "create leases in " + own, "update leases in " + own,
			"create events in " + own, "patch events in " + own:
			seen.Insert(call + " for itself")
		default:
			t.Errorf("%s in namespace %q, want only %q", call, event.ObjectRef.Namespace, ns)
		}
	}
	for _, call := range []string{
		"watch foos", "watch icecreams", "watch deployments", "watch replicasets", "watch pods",
		"create deployments", "create events", "patch foos/status", "patch icecreams/status",
		"watch leases for itself", "create events for itself", "create subjectaccessreviews for itself",
	} {
		if !seen.Has(call) {
			t.Errorf("no request %q in the audit log: this test would not see one for another namespace", call)
		}
	}
}

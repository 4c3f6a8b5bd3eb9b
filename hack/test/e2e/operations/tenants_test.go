// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// tenant is one of the two daemons of manifests/examples/two-tenants.
type tenant struct {
	namespace, serves, account string
	replica                    *framework.Replica
}

func (t tenant) user() string { return serviceaccount.MakeUsername(t.namespace, t.account) }

// TestTwoTenants installs manifests/examples/two-tenants and runs both daemons.
func TestTwoTenants(t *testing.T) {
	tenants := installTenants(t)
	began := time.Now()
	for _, tn := range tenants {
		tn.start(t)
	}
	for _, k := range framework.Kinds {
		for _, tn := range tenants {
			k.Create(t, tn.serves, k.Singular, 2)
		}
		for _, tn := range tenants {
			k.WaitReady(t, tn.serves, k.Singular, 2)
			k.WaitPodsReported(t, tn.serves, k.Singular, 2)
		}
	}
	a, b := tenants[0], tenants[1]
	if of, other := a.holder(t), b.holder(t); of == "" || other == "" || of == other {
		t.Errorf("the Leases are held by %q and %q, want two holders", of, other)
	}
	a.wantNoAccess(t, b)
	b.wantNoAccess(t, a)

	// The end of one daemon does not concern the other.
	a.replica.Stop()
	for _, k := range framework.Kinds {
		for _, tn := range tenants {
			k.Patch(t, tn.serves, k.Singular, `{"spec":{"replicas":1}}`)
		}
		k.WaitReady(t, b.serves, k.Singular, 1)
		if status := k.MustGet(t, a.serves, k.Singular).Status; status.ObservedGeneration != 1 {
			t.Errorf("the %s in %s was served by the daemon for %s: %+v", k.Kind, a.serves, b.serves, status)
		}
	}
	if holder := a.holder(t); holder != "" {
		t.Errorf("the Lease in %s is held by %q after its only replica has ended", a.namespace, holder)
	}
	b.replica.Stop()
	// The end of a replica also ends its watches, which the audit log then has.
	for _, tn := range tenants {
		wantOnlyIn(t, tn.user(), tn.namespace, tn.serves, began)
	}
	a.wantFenced(t, b)
}

// installTenants installs the example like its reader. Uninstalling it leaves the objects of
// the tenants.
func installTenants(t *testing.T) []*tenant {
	t.Helper()
	dir := framework.Manifests(t, "examples/two-tenants")
	var tenants []*tenant
	for _, name := range []string{"team-a", "team-b"} {
		framework.Kubectl(t, "create", "namespace", name)
		tenants = append(tenants, &tenant{namespace: "scm-" + name, serves: name, account: name + "-" + framework.DaemonName})
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := framework.Cluster().Kubectl(ctx, "delete", "-k", dir)
		if err != nil {
			t.Error(err)
		}
		for _, tn := range tenants {
			for _, k := range framework.Kinds {
				if _, err := k.Get(ctx, tn.serves, k.Singular); err != nil {
					t.Errorf("after the daemons were uninstalled: %v", err)
				}
			}
			if _, err := framework.Cluster().Kubectl(ctx, "delete", "namespace", tn.serves, "--wait=false"); err != nil {
				t.Error(err)
			}
		}
	})
	framework.Kubectl(t, "apply", "--warnings-as-errors", "-k", dir)
	for _, tn := range tenants {
		framework.Kubectl(t, "rollout", "status", "-n", tn.namespace, "deployment/"+tn.account, "--timeout=300s")
	}
	return tenants
}

// start starts a replica like the Deployment, whose Pods are only simulated.
func (t *tenant) start(test *testing.T) {
	test.Helper()
	kubeconfig, args := t.command(test)
	t.replica = framework.StartReplicaWith(test, kubeconfig, args...).Ready()
}

// command returns a kubeconfig of the ServiceAccount and the arguments of the Deployment.
func (t *tenant) command(test *testing.T) (kubeconfig string, args []string) {
	test.Helper()
	d, err := framework.Kube().AppsV1().Deployments(t.namespace).Get(test.Context(), t.account, metav1.GetOptions{})
	if err != nil {
		test.Fatal(err)
	}
	container := d.Spec.Template.Spec.Containers[0]
	lines := strings.Join(container.Args, "\n")
	for _, e := range container.Env {
		lines = strings.ReplaceAll(lines, "$("+e.Name+")", e.Value)
	}
	kubeconfig, err = framework.Cluster().ServiceAccountKubeconfig(test.Context(), t.namespace,
		d.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		test.Fatal(err)
	}
	// In a Pod, the daemon knows its namespace.
	return kubeconfig, append(strings.Split(lines, "\n"), "--leader-elect-resource-namespace="+t.namespace)
}

// holder returns the holder of the daemon's Lease.
func (t *tenant) holder(test *testing.T) string {
	test.Helper()
	lease, err := framework.Kube().CoordinationV1().Leases(t.namespace).Get(test.Context(), framework.DaemonName,
		metav1.GetOptions{})
	if err != nil {
		test.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// wantNoAccess sends requests with the token of the daemon's ServiceAccount to what the other
// daemon has and serves, and to that daemon.
func (t *tenant) wantNoAccess(test *testing.T, other *tenant) {
	test.Helper()
	token := framework.NewToken(test, t.namespace, t.account, nil)
	config := framework.TokenConfig(token)
	client := dynamic.NewForConfigOrDie(config)
	for _, resource := range []schema.GroupVersionResource{
		framework.Foos.GroupVersion().WithResource(framework.Foos.Resource),
		framework.Icecreams.GroupVersion().WithResource(framework.Icecreams.Resource),
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "apps", Version: "v1", Resource: "replicasets"},
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "events"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "configmaps"},
	} {
		for _, ns := range []string{other.serves, other.namespace, metav1.NamespaceAll} {
			_, err := client.Resource(resource).Namespace(ns).List(test.Context(), metav1.ListOptions{})
			if !apierrors.IsForbidden(err) {
				test.Errorf("%s listing %s in %q: %v, want it to be forbidden", t.user(), resource.Resource, ns, err)
			}
			err = client.Resource(resource).Namespace(ns).Delete(test.Context(), framework.DaemonName,
				metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			if ns != metav1.NamespaceAll && !apierrors.IsForbidden(err) {
				test.Errorf("%s deleting %s in %q: %v, want it to be forbidden", t.user(), resource.Resource, ns, err)
			}
		}
	}
	// The cage holds it under its name, too.
	path, body := "/apis/apps/v1/namespaces/"+t.serves+"/deployments", `{"metadata":{"name":"foreign"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`
	err := clustertest.DryRun(test.Context(), kubernetes.NewForConfigOrDie(config).Discovery().RESTClient(), "create deployments", path,
		body)
	if err == nil || !strings.Contains(err.Error(), framework.DaemonName+"-cage") {
		test.Errorf("%s creating a Deployment of its own: %v, want the cage to refuse it", t.user(), err)
	}
	for _, path := range []string{"/metrics", "/debug/controllers", "/debug/controllers/foo-controller/" + other.serves + "/foo", "/flagz"} {
		if code, body, err := other.replica.GetAs(test.Context(), token, path); err != nil || code != http.StatusForbidden {
			test.Errorf("%s requesting %s of the other daemon: %d %s %v, want 403", t.user(), path, code, body, err)
		}
	}
}

// wantFenced adds the fence to one of the installations. It must know that daemon under its
// name in its namespace, and only that daemon.
func (t *tenant) wantFenced(test *testing.T, other *tenant) {
	test.Helper()
	kustomization := fmt.Sprintf("namespace: %s\nnamePrefix: %s-\nresources: [manifests/fence]\n", t.namespace, t.serves)
	dir := overlay(test, kustomization)
	for range 2 { // kustomize gives policies a namespace, which the API server must ignore
		framework.Kubectl(test, "apply", "--warnings-as-errors", "-k", dir)
	}
	test.Cleanup(func() {
		name := t.serves + "-" + framework.DaemonName + "-fence"
		if _, err := framework.Cluster().Kubectl(context.WithoutCancel(test.Context()), "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name); err != nil {
			test.Error(err)
		}
	})
	// write writes a status as a daemon whose token is bound to no Pod.
	write := func(ctx context.Context, tn *tenant) error {
		config := framework.TokenConfig(framework.NewToken(test, tn.namespace, tn.account, nil))
		client := kubernetes.NewForConfigOrDie(config).Discovery().RESTClient()
		path := fmt.Sprintf("/apis/samplecontroller.k8s.io/v1alpha1/namespaces/%s/foos/foo/status", tn.serves)
		return clustertest.Write(ctx, client, "patch foos/status", path, `{"status":{"replicas":2}}`)
	}
	clustertest.WaitUntil(test, "the fence works", func(ctx context.Context) error {
		err := write(ctx, t)
		if want := "does not hold the Lease " + t.namespace + "/" + framework.DaemonName; err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got %w, want it to contain %q", err, want)
		}
		return nil
	})
	if err := write(test.Context(), other); err != nil {
		test.Errorf("the fence of one daemon refuses a write of the other: %v", err)
	}
}

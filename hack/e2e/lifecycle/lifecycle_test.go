// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

func TestSignalsReleaseLease(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			framework.FreeLease(t)
			r := framework.StartReplica(t).Ready()
			framework.WaitLeader(t, "")
			r.Signal(s)
			r.WantExit(0)
			lease, err := framework.Lease(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
				t.Errorf("the Lease is still held by %s", holder)
			}
		})
	}
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	framework.FreeLease(t)
	link := clustertest.StartLink(t, framework.Cluster())
	r := framework.StartReplicaWith(t, link.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName), "--leader-elect-renew-deadline=5s").Ready()
	r.WaitLog("Starting workers") // it may hold the Lease and not know it yet
	link.Hold(clustertest.Both)   // the Lease cannot be released
	r.Signal(syscall.SIGTERM)
	r.WaitLog("All controllers have stopped")
	r.Signal(syscall.SIGTERM)
	r.WantExit(1)
}

// TestMissingAPIDelaysNoElection starts the daemon before a CRD is installed. The daemon
// campaigns without that cache and serves the other kinds.
func TestMissingAPIDelaysNoElection(t *testing.T) {
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	framework.RestoreCRDs(t)
	framework.Kubectl(t, "delete", "crd", "icecreams.controller.nicoleh.io", "--wait", "--timeout=60s")
	r := framework.StartReplica(t)
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)
	r.Stop()
}

// TestMissingPermissionDelaysNoElection starts the daemon before it may read anything. The
// daemon leads, and serves Foos once it has the permissions, without a restart.
func TestMissingPermissionDelaysNoElection(t *testing.T) {
	framework.ExpectDenials(t, cluster.Unauthorized)
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	grant := takeControllersRights(t)
	r := framework.StartReplica(t)
	r.WaitLog(`"Leading"`)
	clustertest.WaitUntil(t, "the replica says what it waits for", func(ctx context.Context) error {
		code, body, err := r.Get(ctx, "/readyz")
		if err == nil && (code != http.StatusInternalServerError || !strings.Contains(body, "[-]informer-sync")) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	framework.Foos.Create(t, ns, "a", 1)
	grant(t.Context())
	framework.Foos.WaitReady(t, ns, "a", 1)
	r.Ready().Stop()
}

// takeControllersRights takes from the daemon all that its controllers may do, until the
// returned function is called or the test ends.
func takeControllersRights(t *testing.T) (restore func(context.Context)) {
	t.Helper()
	const name = framework.DaemonName + "-controllers"
	bindings := framework.Kube().RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	binding.ObjectMeta = metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels, Annotations: binding.Annotations}
	restore = func(ctx context.Context) {
		if _, err := bindings.Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
		waitAllowed(t, ctx, true)
	}
	t.Cleanup(func() { restore(context.WithoutCancel(t.Context())) })
	waitAllowed(t, t.Context(), false)
	return restore
}

// waitAllowed waits until the API server has learnt whether the daemon may list Foos.
func waitAllowed(t *testing.T, ctx context.Context, want bool) {
	t.Helper()
	question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               framework.DaemonUser,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: framework.Foos.Group, Resource: framework.Foos.Resource, Verb: "list"},
	}}
	for {
		answer, err := framework.Kube().AuthorizationV1().SubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
		}
		if err != nil || answer.Status.Allowed == want {
			return
		}
	}
}

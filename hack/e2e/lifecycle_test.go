// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

func TestSignalsEndTheDaemonInOrder(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			freeLease(t)
			r := startReplica(t).ready()
			waitLeader(t, "")
			r.signal(s)
			r.wantExit(0)
			lease, err := lease(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
				t.Errorf("the Lease is still held by %s", holder)
			}
		})
	}
}

func TestASecondSignalEndsTheDaemonAtOnce(t *testing.T) {
	freeLease(t)
	link := clustertest.StartLink(t, testCluster)
	r := startReplicaWith(t, link.Kubeconfig(t, testCluster, daemonName, daemonName), "--leader-elect-renew-deadline=5s").ready()
	r.waitLog("Starting workers") // it may hold the Lease and not know it yet
	link.Hold(clustertest.Both)   // the Lease cannot be released
	r.signal(syscall.SIGTERM)
	r.waitLog("All controllers have stopped")
	r.signal(syscall.SIGTERM)
	r.wantExit(1)
}

// TestAMissingAPIDelaysNoElection starts the daemon before a CRD is there: its caches
// are as full as they can be, so it campaigns, and serves what is there.
func TestAMissingAPIDelaysNoElection(t *testing.T) {
	freeLease(t)
	ns := newNamespace(t)
	restoreCRDs(t)
	kubectl(t, "delete", "crd", "icecreams.controller.nicoleh.io", "--wait", "--timeout=60s")
	r := startReplica(t)
	foos.create(t, ns, "a", 1)
	foos.waitReady(t, ns, "a", 1)
	r.stop()
}

// TestAMissingPermissionDelaysNoElection starts the daemon before it may read anything:
// it leads, and serves Foos as soon as it is let, without a restart.
func TestAMissingPermissionDelaysNoElection(t *testing.T) {
	provokeDenials(t, cluster.Unauthorized)
	freeLease(t)
	ns := newNamespace(t)
	grant := takeControllersRights(t)
	r := startReplica(t)
	r.waitLog(`"Leading"`)
	waitUntil(t, "the replica says what it waits for", func(ctx context.Context) error {
		code, body, err := r.get(ctx, "/readyz")
		if err == nil && (code != http.StatusInternalServerError || !strings.Contains(body, "[-]informer-sync")) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	foos.create(t, ns, "a", 1)
	grant(t.Context())
	foos.waitReady(t, ns, "a", 1)
	r.ready().stop()
}

// takeControllersRights takes from the daemon all that its controllers may do, until the
// returned function is called or the test ends.
func takeControllersRights(t *testing.T) (restore func(context.Context)) {
	t.Helper()
	const name = daemonName + "-controllers"
	bindings := kube.RbacV1().ClusterRoleBindings()
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
		User:               daemonUser,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: foos.Group, Resource: foos.resource, Verb: "list"},
	}}
	for {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
		}
		if err != nil || answer.Status.Allowed == want {
			return
		}
	}
}

func TestAStandbyTakesOver(t *testing.T) {
	freeLease(t)
	first := startReplica(t).ready()
	holder := waitLeader(t, "")
	second := startReplica(t).ready() // a warm standby is ready
	namespaces := map[kind]string{}
	for _, k := range kinds {
		namespaces[k] = newNamespace(t)
		k.create(t, namespaces[k], "a", 1)
		k.waitReady(t, namespaces[k], "a", 1)
	}

	// Change the objects all the while, so that there is work to drain.
	ctx, stopTouching := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	for k, ns := range namespaces {
		touching.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_ = k.touch(ctx, ns, "a", fmt.Sprint(i)) // only the load matters
			}
		})
	}
	first.stop()
	waitLeader(t, holder)
	stopTouching()
	touching.Wait()
	for k, ns := range namespaces {
		k.create(t, ns, "b", 1)
		k.waitReady(t, ns, "b", 1)
		k.waitTold(t, ns, "b", 1)
	}
	second.stop()
	for k, ns := range namespaces {
		wantOneWriterAtATime(t, k.controller, ns)
		wantOneWriterAtATime(t, aggregator, ns)
	}
	wantNoDenials(t)
}

// wantOneWriterAtATime checks that no replica of a controller wrote in a namespace
// after another had begun to. Replicas are told apart by their tokens.
func wantOneWriterAtATime(t *testing.T, controller, ns string) {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent(controller), cluster.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	var writers []string
	for _, event := range events {
		writer := strings.Join(event.User.Extra["authentication.kubernetes.io/credential-id"], "")
		if writer == "" {
			t.Fatalf("the audit log does not tell the token of %s", cluster.Call(event))
		}
		if len(writers) == 0 || writers[len(writers)-1] != writer {
			writers = append(writers, writer)
		}
	}
	if len(writers) != 2 {
		t.Errorf("%s: the writers were, one after the other, %q: want two", controller, writers)
	}
}

// writes counts what the controller of the kind wrote in a namespace, by call, of all
// that matches the conditions. What the aggregator wrote is not among it.
func (k kind) writes(t *testing.T, ns string, conditions ...func(auditv1.Event) bool) map[string]int {
	t.Helper()
	return writesBy(t, k.controller, ns, conditions...)
}

func writesBy(t *testing.T, controller, ns string, conditions ...func(auditv1.Event) bool) map[string]int {
	t.Helper()
	events, err := testCluster.AuditEvents(append(conditions, cluster.ByUserAgent(controller), cluster.InNamespace(ns))...)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, event := range events {
		if event.Verb != "list" { // it lists an object to look at it once more
			calls[cluster.Call(event)]++
		}
	}
	return calls
}

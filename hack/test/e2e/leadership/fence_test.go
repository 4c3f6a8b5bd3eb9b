// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	coordinationv1apply "k8s.io/client-go/applyconfigurations/coordination/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

const (
	fence     = framework.DaemonName + "-fence"
	unbound   = "unbound" // a token of the daemon that is not bound to a Pod
	admin     = "admin"
	elsewhere = "elsewhere_5b2ae4a2" // a holder of the Lease that is not one of our Pods
)

// TestFenceAdmitsOnlyHolder installs manifests/fence in addition to the base, and writes like
// the daemon, with the tokens of its Pods.
func TestFenceAdmitsOnlyHolder(t *testing.T) {
	behindFence(t, func(a, b string) {
		ns := framework.NewNamespace(t)
		writers := map[string]*writer{
			a: newWriter(ns, boundToken(t, a)), b: newWriter(ns, boundToken(t, b)), unbound: newWriter(ns, boundToken(t, "")),
			admin: newAdmin(ns),
		}
		createTargets(t, ns)
		// wantWrites checks who may make each of the daemon's writes. The error of a denied
		// write must give the Lease as the reason.
		wantWrites := func(state string, may ...string) {
			t.Helper()
			for who, w := range writers {
				for what, err := range w.writes(t.Context()) {
					if slices.Contains(may, who) {
						if err != nil {
							t.Errorf("%s: %s by %s: %v", state, what, who, err)
						}
					} else if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
						"does not hold the Lease "+framework.DaemonName+"/"+framework.DaemonName) {
						t.Errorf("%s: %s by %s: %v, want it to be denied because of the Lease", state, what, who, err)
					}
				}
			}
		}

		setHolder(t, a+"_5b2ae4a2")
		writers[b].waitUntilMay(t, false)
		writers[a].waitUntilMay(t, true)
		wantWrites("a leads", a, admin)
		// Writes of a standby are not fenced, and nor are dry runs, which are those of a shadow and of plan.
		for _, who := range []string{a, b, unbound} {
			writers[who].wantUnfenced(t)
			if err := writers[who].createDry(t.Context()); err != nil {
				t.Errorf("a dry run by %s: %v", who, err)
			}
		}

		began := time.Now()
		setHolder(t, b+"_c0ffee00")
		for writers[b].create(t.Context()) != nil && t.Context().Err() == nil {
		}
		t.Logf("the new holder's writes were admitted %v after it took the Lease", time.Since(began))
		writers[a].waitUntilMay(t, false)
		wantWrites("b leads", b, admin)

		// A Pod must not pass because the holder's name is a prefix of its name.
		setHolder(t, b+"x_c0ffee00")
		writers[b].waitUntilMay(t, false)
		wantWrites("another leads", admin)

		setHolder(t, "")
		wantWrites("the Lease is released", admin)

		// Without a Lease, the fence is open.
		framework.FreeLease(t)
		writers[a].waitUntilMay(t, true)
		wantWrites("there is no Lease", a, b, unbound, admin)
	})
}

// TestFenceDenyingWithoutLease shows why manifests/fence does not deny writes without a Lease.
// The test denies them in one namespace only: in all namespaces, nothing could create a
// Deployment any more.
func TestFenceDenyingWithoutLease(t *testing.T) {
	behindFence(t, func(a, _ string) {
		ns := framework.NewNamespace(t)
		createTargets(t, ns)
		stranger := newAdmin(ns)
		patchFence(t, fmt.Sprintf(`{"paramRef":{"parameterNotFoundAction":"Deny"},"matchResources":{"namespaceSelector":{"matchLabels":{%q:%q}}}}`, corev1.LabelMetadataName, ns))

		framework.FreeLease(t)
		stranger.waitUntilMay(t, false)
		for what, err := range stranger.writes(t.Context()) {
			if !refused(err) {
				t.Errorf("%s by the admin while there is no Lease: %v, want it to be denied", what, err)
			}
		}
		setHolder(t, a+"_5b2ae4a2")
		stranger.waitUntilMay(t, true)
	})
}

// TestDaemonBehindFence runs a daemon that believes it leads, as after a suspension, while
// another holder has the Lease, and then with its own Pod as the holder.
func TestDaemonBehindFence(t *testing.T) {
	behindFence(t, func(a, _ string) {
		token := boundToken(t, a)
		newWriter(framework.NewNamespace(t), token).waitUntilMay(t, false)

		kubeconfig := framework.Kubeconfig(t, func(_ string, _ *clientcmdapi.Cluster,
			user *clientcmdapi.AuthInfo) {
			user.Token = token
		})
		r := framework.StartReplicaWith(t, kubeconfig, "--leader-elect=false").Ready()
		namespaces := map[framework.Kind]string{}
		for _, k := range framework.Kinds {
			namespaces[k] = framework.NewNamespace(t)
			k.Create(t, namespaces[k], "web", 1)
		}
		r.WaitLog("does not hold the Lease")
		for k, ns := range namespaces {
			deployments, err := framework.Kube().AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if object := k.MustGet(t, ns, "web"); len(deployments.Items) > 0 || object.Status.ObservedGeneration > 0 {
				t.Errorf("the fence admitted %d Deployments and the status %+v", len(deployments.Items), object.Status)
			}
		}

		setHolder(t, a+"_5b2ae4a2")
		for k, ns := range namespaces {
			k.WaitReady(t, ns, "web", 1)
			k.WaitPodsReported(t, ns, "web", 1)
			k.Patch(t, ns, "web", `{"spec":{"replicas":2}}`)
			k.WaitReady(t, ns, "web", 2)
			k.Patch(t, ns, "web", `{"spec":{"deploymentName":"other"}}`)
			k.WaitReady(t, ns, "web", 2)
		}
		r.Stop()
	})
}

// TestReinstalledFenceIsBlind shows why the manual says never to delete the fence temporarily.
// The API server stops watching Leases when no policy uses them, and does not start again:
// https://github.com/kubernetes/kubernetes/issues/130887.
func TestReinstalledFenceIsBlind(t *testing.T) {
	framework.ExpectDenials(t, cluster.Unauthorized) // while the API server starts and does not know the roles yet
	framework.ExpectUnknownKinds()
	behindFence(t, func(a, b string) {
		ns := framework.NewNamespace(t)
		before, after := newWriter(ns, boundToken(t, a)), newWriter(ns, boundToken(t, b))
		setHolder(t, a+"_5b2ae4a2")
		after.waitUntilMay(t, false)
		before.waitUntilMay(t, true)

		deleted := time.Now()
		framework.Kubectl(t, "delete", "-k", framework.Manifests(t, "fence"))
		after.waitUntilMay(t, true)
		clustertest.WaitUntil(t, "the API server stops watching Leases", func(context.Context) error {
			ended := framework.Audit(t, func(event auditv1.Event) bool {
				return event.Verb == "watch" && event.User.Username == "system:apiserver" &&
					event.ObjectRef.Resource == "leases" && event.StageTimestamp.After(deleted)
			})
			if len(ended) == 0 {
				return errors.New("no watch has ended")
			}
			return nil
		})
		setHolder(t, b+"_5b2ae4a2")
		framework.Kubectl(t, "apply", "-k", framework.Manifests(t, "fence"))
		clustertest.WaitUntil(t, "the fence still takes the former holder for the current one", func(ctx context.Context) error {
			if err := after.create(ctx); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a+"_5b2ae4a2 does") {
				return fmt.Errorf("the holder's write: %v", err)
			}
			return before.create(ctx)
		})

		if err := framework.Cluster().RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		after.waitUntilMay(t, true)
		before.waitUntilMay(t, false)
	})
}

// behindFence installs manifests/base and manifests/fence and runs a test with the names of
// the daemon's two Pods.
func behindFence(t *testing.T, test func(a, b string)) {
	t.Helper()
	framework.ExpectDenials(t, func(event auditv1.Event) bool {
		return strings.Contains(event.ResponseStatus.Message, "does not hold the Lease")
	})
	defer switchFenceOff(t)
	installFence(t)
	pods, err := framework.Kube().CoreV1().Pods(framework.DaemonName).List(t.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + framework.DaemonName})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	if len(names) != 2 {
		t.Fatalf("got Pods %q, want two", names)
	}
	test(names[0], names[1])
}

// installFence installs the fence, and returns when it denies writes and its expressions have
// been type-checked.
func installFence(t *testing.T) {
	t.Helper()
	framework.Kubectl(t, "apply", "--warnings-as-errors", "-k", framework.Manifests(t, "base"))
	framework.Kubectl(t, "rollout", "status", "-n", framework.DaemonName, "deployment/"+framework.DaemonName, "--timeout=300s")
	setHolder(t, elsewhere)
	framework.Kubectl(t, "apply", "--warnings-as-errors", "-k", framework.Manifests(t, "fence"))
	newWriter(framework.NewNamespace(t), boundToken(t, "")).waitUntilMay(t, false)
	clustertest.WaitUntil(t, "the expressions of the fence are type-checked", func(ctx context.Context) error {
		policy, err := framework.Kube().AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, fence,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		if policy.Status.ObservedGeneration != policy.Generation || policy.Status.TypeChecking == nil {
			return errors.New("not yet")
		}
		if warnings := policy.Status.TypeChecking.ExpressionWarnings; len(warnings) > 0 {
			t.Errorf("the fence has warnings: %v", warnings)
		}
		return nil
	})
}

// switchFenceOff lets the daemons of other tests write, which do not run in Pods. It does not
// delete the fence, because a reinstalled fence would be blind.
func switchFenceOff(t *testing.T) {
	t.Helper()
	setHolder(t, elsewhere)
	patchFence(t, `{"validationActions":["Audit"],"paramRef":{"parameterNotFoundAction":"Allow"},"matchResources":{"namespaceSelector":null}}`)
	newWriter(framework.NewNamespace(t), boundToken(t, "")).waitUntilMay(t, true)
	framework.Kubectl(t, "delete", "-n", framework.DaemonName, "deployment,service,pdb", framework.DaemonName)
	framework.FreeLease(t)
}

// patchFence changes the spec of the fence's binding.
func patchFence(t *testing.T, spec string) {
	t.Helper()
	framework.Kubectl(t, "patch", "validatingadmissionpolicybinding", fence, "--type=merge", "-p", `{"spec":`+spec+`}`)
}

// setHolder updates the Lease as if the given identity had taken it.
func setHolder(t *testing.T, holder string) {
	t.Helper()
	lease := coordinationv1apply.Lease(framework.DaemonName,
		framework.DaemonName).WithSpec(coordinationv1apply.LeaseSpec().WithHolderIdentity(holder))
	_, err := framework.Kube().CoordinationV1().Leases(framework.DaemonName).Apply(t.Context(), lease,
		metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		t.Fatal(err)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestFlowControl floods the priority level that the daemon shares with other ServiceAccounts.
// With the component flow-control the leader renews its Lease, and an operator can stop its
// other requests. Without the component it loses the Lease.
func TestFlowControl(t *testing.T) {
	component := framework.Manifests(t, "components/flow-control/flowcontrol.yaml")
	remove := func(ctx context.Context) error {
		_, err := framework.Cluster().Kubectl(ctx, "delete", "--ignore-not-found", "-f", component)
		return err
	}
	framework.Kubectl(t, "apply", "--warnings-as-errors", "-f", component)
	t.Cleanup(func() {
		if err := remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	framework.FreeLease(t)
	leader := framework.StartReplica(t, "--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s", "--write-timeout=3s").Ready()
	leader.WaitLog(`"Leading"`)
	narrowSharedLevel(t)
	flood(t)

	ns := framework.NewNamespace(t)
	framework.Foos.CreateNaming(t, ns, "before", "before")
	framework.Foos.WaitReady(t, ns, "before", 1)
	waitRenewals(t, 10)

	// A level without seats stops the daemon's requests, but not its renewals.
	setShares(t, 0)
	framework.Foos.CreateNaming(t, ns, "throttled", "throttled")
	waitRenewals(t, 10)
	if foo := framework.Foos.MustGet(t, ns, "throttled"); foo.Status.ObservedGeneration > 0 {
		t.Error("the daemon wrote a status without a seat at the API server")
	}
	setShares(t, 10)
	framework.Foos.WaitReady(t, ns, "throttled", 1)
	const lost = `"Lost the lease,`
	if strings.Contains(leader.Log.String(), lost) {
		t.Error("the leader lost the Lease, want it to keep it with the component")
	}

	if err := remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader.WaitLog(lost)
}

// waitRenewals waits for a number of renewals of the Lease.
func waitRenewals(t *testing.T, count int) {
	t.Helper()
	var last time.Time
	seen := -1 // the first is not a renewal
	clustertest.WaitUntil(t, fmt.Sprintf("the Lease is renewed %d times", count), func(context.Context) error {
		renewed := framework.CurrentLease(t, framework.DaemonName).Spec.RenewTime
		if renewed != nil && !renewed.Time.Equal(last) {
			last = renewed.Time
			seen++
		}
		if seen < count {
			return fmt.Errorf("renewed %d times", seen)
		}
		return nil
	})
}

// sharedLevel is the priority level of ServiceAccounts, and of the daemon without the
// component.
const sharedLevel = "workload-low"

// narrowSharedLevel leaves the shared level only a few seats, so that few requests suffice to
// fill it.
func narrowSharedLevel(t *testing.T) {
	t.Helper()
	// The API server restores an object that has not lost this annotation.
	const patch = `{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"%t"}},"spec":{"limited":{
		"nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0}}}`
	t.Cleanup(func() {
		if err := patchLevel(context.WithoutCancel(t.Context()), sharedLevel, fmt.Sprintf(patch, true)); err != nil {
			t.Error(err)
		}
	})
	if err := patchLevel(t.Context(), sharedLevel, fmt.Sprintf(patch, false)); err != nil {
		t.Fatal(err)
	}
}

// setShares changes the shares of the daemon's level, as an operator would.
func setShares(t *testing.T, shares int) {
	t.Helper()
	if err := patchLevel(t.Context(), framework.DaemonName, fmt.Sprintf(`{"spec":{"limited":{"nominalConcurrencyShares":%d}}}`, shares)); err != nil {
		t.Fatal(err)
	}
}

func patchLevel(ctx context.Context, level, patch string) error {
	_, err := framework.Kube().FlowcontrolV1().PriorityLevelConfigurations().Patch(ctx, level, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	return err
}

// flood sends requests that take seconds each, as 40 ServiceAccounts, until the test ends.
func flood(t *testing.T) {
	t.Helper()
	ns := framework.NewNamespace(t)
	slowCreates(t, ns)
	framework.Grant(t, ns, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + ns},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	ctx, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	t.Cleanup(func() { stop(); senders.Wait() })
	for i := range 40 {
		config := rest.CopyConfig(framework.Cluster().Config())
		config.QPS = -1
		config.Impersonate = rest.ImpersonationConfig{
			UserName: fmt.Sprintf("system:serviceaccount:%s:flood-%d", ns, i),
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"},
		}
		client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(ns)
		for range 4 {
			senders.Go(func() {
				for ctx.Err() == nil {
					// Most fail, because they wait too long for a seat.
					_, _ = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "flood-"}},
						metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				}
			})
		}
	}
}

// slowCreates makes each creation of a ConfigMap in a namespace take 2 s, by a webhook that
// does not answer.
func slowCreates(t *testing.T, ns string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "slow.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + listener.Addr().String())},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](2),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"configmaps"}},
			}},
		}},
	}
	webhooks := framework.Kube().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := webhooks.Create(t.Context(), webhook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

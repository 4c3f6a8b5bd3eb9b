// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestAccountOfEachController installs a daemon with the component service-account-credentials,
// uses every permission of its controllers, and compares what was granted to the ServiceAccount
// of each with what it used.
func TestAccountOfEachController(t *testing.T) {
	tn := installWithAccounts(t)
	began := time.Now()
	tn.wantPreflight(t, 0, "permissions: foo-controller OK all 4 granted")
	tn.start(t)
	for _, k := range framework.Kinds {
		k.Create(t, tn.serves, k.Singular, 2)
		k.WaitReady(t, tn.serves, k.Singular, 2)
		k.Patch(t, tn.serves, k.Singular, `{"spec":{"replicas":1}}`)
		k.WaitReady(t, tn.serves, k.Singular, 1)
		k.WaitPodsReported(t, tn.serves, k.Singular, 1)
	}
	tn.wantRecovery(t)
	tn.replica.Stop()

	tn.wantNoWrites(t, began)
	for _, d := range app.Program().Controllers {
		tn.wantUsed(t, d.Name, began)
	}
	tn.wantOnlyStatuses(t)
}

// installWithAccounts installs a daemon for one namespace, under other names.
func installWithAccounts(t *testing.T) *tenant {
	t.Helper()
	served := framework.NewNamespace(t)
	dir := overlay(t, `namespace: scm-accounts
namePrefix: acc-
resources: [manifests/base]
components: [manifests/components/service-account-credentials, manifests/components/single-namespace]
transformers: [manifests/components/service-account-credentials/transformers, manifests/components/single-namespace/transformers]
patches:
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: sample-controller-manager, namespace: sample-controller-manager}
    spec: {template: {spec: {containers: [{name: sample-controller-manager, env: [{name: SERVED_NAMESPACE, value: `+served+`}]}]}}}
`)
	framework.Apply(t, "-k", dir)
	return &tenant{namespace: "scm-accounts", serves: served, account: "acc-" + framework.DaemonName}
}

// wantPreflight checks the exit code of preflight, and a line of its table.
func (t *tenant) wantPreflight(test *testing.T, wantCode int, wantLine string) {
	test.Helper()
	kubeconfig, args := t.command(test)
	stdout, stderr, code := framework.RunCommand(test, append([]string{"preflight", "--kubeconfig=" + kubeconfig}, args...)...)
	if code != wantCode || !strings.Contains(strings.Join(strings.Fields(stdout), " "), wantLine) {
		test.Errorf("preflight: exit code %d, want %d and %q:\n%s%s", code, wantCode, wantLine, stdout, stderr)
	}
}

// accountOf returns the ServiceAccount of a controller.
func (t *tenant) accountOf(controller string) cache.ObjectName {
	return cache.NewObjectName(t.namespace, t.account+"-"+controller)
}

// wantUsed checks that a controller used every right of its account, and needed no other.
func (t *tenant) wantUsed(test *testing.T, controller string, since time.Time) {
	test.Helper()
	account := t.accountOf(controller)
	used := sets.New[string]()
	for _, event := range requestsOf(test, serviceaccount.MakeUsername(account.Parts()), since) {
		used.Insert(framework.Uses(event)...)
	}
	unused := framework.Granted(test, account, t.serves).Difference(used)
	for right := range unused {
		// Only an admission plugin requires it.
		if verb, resource, _ := strings.Cut(right, " "); verb == "update" && strings.Contains(resource, "/finalizers") {
			unused.Delete(right)
		}
	}
	if len(unused) > 0 {
		test.Errorf("%s never used its right to %s", account, strings.Join(sets.List(unused), ", "))
	}
	for _, namespace := range []string{t.namespace, metav1.NamespaceDefault} {
		if rights := framework.Granted(test, account, namespace); len(rights) > 0 {
			test.Errorf("in %s, %s may %s", namespace, account, strings.Join(sets.List(rights), ", "))
		}
	}
}

// wantNoWrites checks that the program itself wrote nothing that its controllers write.
func (t *tenant) wantNoWrites(test *testing.T, since time.Time) {
	test.Helper()
	written := sets.New[string]()
	for _, d := range app.Program().Controllers {
		written = written.Union(framework.Granted(test, t.accountOf(d.Name), t.serves))
	}
	for _, event := range requestsOf(test, t.user(), since) {
		if written.HasAny(framework.Uses(event)...) {
			test.Errorf("the program itself sent: %s", cluster.Call(event))
		}
	}
}

// wantRecovery deletes the account of one controller. The others continue, and it recovers once
// the account is there again.
func (t *tenant) wantRecovery(test *testing.T) {
	test.Helper()
	accounts, account := framework.Kube().CoreV1().ServiceAccounts(t.namespace), t.accountOf("foo-controller")
	if err := accounts.Delete(test.Context(), account.Name, metav1.DeleteOptions{}); err != nil {
		test.Fatal(err)
	}
	foos, icecreams := framework.Foos, framework.Icecreams
	replicas := 1
	clustertest.WaitUntil(test, "foo-controller has no token", func(context.Context) error {
		replicas = 3 - replicas // the API server accepts the token for some seconds
		foos.Patch(test, t.serves, foos.Singular, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		if want := fmt.Sprintf(`requesting a token of ServiceAccount %s, as which foo-controller writes`, account); !strings.Contains(t.replica.Log.String(), want) {
			return fmt.Errorf("the log does not contain %q", want)
		}
		return nil
	})
	t.replica.WaitState("foo-controller", "Degraded", "requesting a token of ServiceAccount "+account.String())
	t.wantPreflight(test, 1, "permissions: foo-controller FAIL requesting a token of ServiceAccount "+account.String())
	icecreams.Patch(test, t.serves, icecreams.Singular, `{"spec":{"replicas":2}}`)
	icecreams.WaitReady(test, t.serves, icecreams.Singular, 2)
	if _, err := accounts.Create(test.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account.Name}},
		metav1.CreateOptions{}); err != nil {
		test.Fatal(err)
	}
	foos.WaitReady(test, t.serves, foos.Singular, replicas)
}

// wantOnlyStatuses checks that with the token of the aggregator nobody can write Deployments, or
// read anything.
func (t *tenant) wantOnlyStatuses(test *testing.T) {
	test.Helper()
	account := t.accountOf("status-aggregator-controller")
	client := kubernetes.NewForConfigOrDie(framework.TokenConfig(framework.NewToken(test, account.Namespace, account.Name,
		nil)))
	deployments := client.AppsV1().Deployments(t.serves)
	_, err := deployments.Patch(test.Context(), "foo", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	_, listErr := deployments.List(test.Context(), metav1.ListOptions{})
	for _, err := range []error{err, deployments.Delete(test.Context(), "foo", metav1.DeleteOptions{}), listErr} {
		if !apierrors.IsForbidden(err) {
			test.Errorf("with the token of %s: %v, want it to be forbidden", account, err)
		}
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestCRDsOutliveDaemon uninstalls the base, which leaves all objects, and then lets kubectl say
// what goes with the CRDs.
func TestCRDsOutliveDaemon(t *testing.T) {
	ns := framework.NewNamespace(t)
	for _, k := range framework.Kinds {
		k.Create(t, ns, "kept", 1)
	}
	framework.Kubectl(t, "apply", "-k", framework.Manifests(t, "base"))
	defer reinstall(t)
	framework.Kubectl(t, "delete", "-k", framework.Manifests(t, "base"))
	for _, k := range framework.Kinds {
		k.MustGet(t, ns, "kept")
	}

	// With this flag, kubectl fails because of the warnings, and the error has them.
	for _, dir := range []string{"crds", "cluster"} {
		_, err := framework.Cluster().Kubectl(t.Context(), "delete", "--warnings-as-errors", "--dry-run=server", "-k", framework.Manifests(t, dir))
		for _, k := range framework.Kinds {
			for _, want := range []string{
				"this deletes every " + k.Kind + " in all namespaces, and then their Deployments and Pods.",
				"kubectl delete " + k.CRD() + " --all --all-namespaces --cascade=orphan",
			} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("deleting manifests/%s: %v, want a warning with %q", dir, err, want)
				}
			}
			k.MustGet(t, ns, "kept")
		}
	}
}

// reinstall installs again what other tests need.
func reinstall(t *testing.T) {
	t.Helper()
	if err := framework.Cluster().Install(t.Context()); err != nil {
		t.Error(err)
	}
	waitGranted(t, metav1.NamespaceDefault, "create events", true)
	waitGranted(t, metav1.NamespaceDefault, "list pods", true)
}

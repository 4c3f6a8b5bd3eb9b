// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestIcecreamExample does what a newcomer does.
func TestIcecreamExample(t *testing.T) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	ns := framework.NewNamespace(t)
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	framework.Kubectl(t, "-n", ns, "apply", "-f", filepath.Join(root, "manifests", "examples", "icecream.yaml"))
	waitIcecream(t, ns, "example-icecream", 1)
	if out := framework.Kubectl(t, "-n", ns, "get", "deployment", "example-icecream"); !strings.Contains(out, "1/1") {
		t.Errorf("kubectl get deployment:\n%s", out)
	}
	p := getIcecream(t, ns, "example-icecream").Status.Placements[0]
	line := fmt.Sprintf(`] "Pod scheduled" icecream=%q pod=%q node=%q`, ns+"/example-icecream", ns+"/"+p.Pod, p.Node)
	if !strings.Contains(r.Log.String(), line) {
		t.Errorf("the log does not say %s", line)
	}
	clustertest.WaitUntil(t, "kubectl tells where the Pod runs", func(context.Context) error {
		if out := framework.Kubectl(t, "-n", ns, "get", "icecream"); !strings.Contains(out, "1/1 ready on "+p.Node) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	clustertest.WaitUntil(t, "there is one Event", func(context.Context) error {
		out := framework.Kubectl(t, "-n", ns, "get", "events", "--field-selector=reason=PodsScheduled", "--no-headers", "-o", "custom-columns=M:.message,C:.count")
		if want := fmt.Sprintf("Pod %s was placed on %s 1", p.Pod, p.Node); strings.Join(strings.Fields(out), " ") != want {
			return fmt.Errorf("%q", out)
		}
		return nil
	})
	r.Stop()
}

// TestIcecreamCRDDeleted deletes the CRD while the daemon runs: the others are
// served as before.
func TestIcecreamCRDDeleted(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.FreeLease(t)
	framework.RestoreCRDs(t)
	r := framework.StartReplica(t).Ready()
	createIcecream(t, ns, "a", 1)
	waitIcecream(t, ns, "a", 1)
	createBoth(t, ns, "x", 1)
	framework.Kubectl(t, "delete", "crd", "icecreams.controller.nicoleh.io", "--wait", "--timeout=60s")
	patch := []byte(`{"spec":{"replicas":2}}`)
	if _, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.WaitUntil(t, "the Foo is served", func(ctx context.Context) error {
		foo, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).Get(ctx, "x", metav1.GetOptions{})
		if err == nil && (foo.Status.AvailableReplicas != 2 || foo.Status.Pods == nil || foo.Status.Pods.Ready != 2) {
			err = fmt.Errorf("status %+v", foo.Status)
		}
		return err
	})
	if code, body, err := r.Get(t.Context(), "/healthz"); err != nil || code != 200 {
		t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
	r.Stop()
}

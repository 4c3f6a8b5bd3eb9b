// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestIcecreamExample does what a newcomer does.
func TestIcecreamExample(t *testing.T) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t)
	freeLease(t)
	r := startReplica(t).ready()
	kubectl(t, "-n", ns, "apply", "-f", filepath.Join(root, "manifests", "examples", "icecream.yaml"))
	waitIcecream(t, ns, "example-icecream", 1)
	if out := kubectl(t, "-n", ns, "get", "deployment", "example-icecream"); !strings.Contains(out, "1/1") {
		t.Errorf("kubectl get deployment:\n%s", out)
	}
	p := getIcecream(t, ns, "example-icecream").Status.Placements[0]
	line := fmt.Sprintf(`] "Pod scheduled" icecream=%q pod=%q node=%q`, ns+"/example-icecream", ns+"/"+p.Pod, p.Node)
	if !strings.Contains(r.log.String(), line) {
		t.Errorf("the log does not say %s", line)
	}
	waitUntil(t, "kubectl tells where the Pod runs", func(context.Context) error {
		if out := kubectl(t, "-n", ns, "get", "icecream"); !strings.Contains(out, "1/1 ready on "+p.Node) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	waitUntil(t, "one Event tells of it", func(context.Context) error {
		out := kubectl(t, "-n", ns, "get", "events", "--field-selector=reason=PodsScheduled", "--no-headers", "-o", "custom-columns=M:.message,C:.count")
		if want := fmt.Sprintf("Pod %s was placed on %s 1", p.Pod, p.Node); strings.Join(strings.Fields(out), " ") != want {
			return fmt.Errorf("%q", out)
		}
		return nil
	})
	r.stop()
}

// TestIcecreamCRDGoes deletes the CRD while the daemon runs: the others are
// served as before.
func TestIcecreamCRDGoes(t *testing.T) {
	ns := newNamespace(t)
	freeLease(t)
	restoreCRDs(t)
	r := startReplica(t).ready()
	createIcecream(t, ns, "a", 1)
	waitIcecream(t, ns, "a", 1)
	createBoth(t, ns, "x", 1)
	kubectl(t, "delete", "crd", "icecreams.controller.nicoleh.io", "--wait", "--timeout=60s")
	patch := []byte(`{"spec":{"replicas":2}}`)
	if _, err := sample.SamplecontrollerV1alpha1().Foos(ns).Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the Foo is served", func(ctx context.Context) error {
		foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, "x", metav1.GetOptions{})
		if err == nil && (foo.Status.AvailableReplicas != 2 || foo.Status.Pods == nil || foo.Status.Pods.Ready != 2) {
			err = fmt.Errorf("status %+v", foo.Status)
		}
		return err
	})
	if code, body, err := r.get(t.Context(), "/healthz"); err != nil || code != 200 {
		t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
	r.stop()
}

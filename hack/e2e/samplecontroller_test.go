// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// sampleController returns the path of Kubernetes' sample-controller, which is
// built if need be.
func sampleController(t *testing.T) string {
	t.Helper()
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "sample-controller")
	if err != nil {
		t.Fatal(err)
	}
	return paths["sample-controller"]
}

// startSampleController starts it as its README tells to. It has no manifests, so
// it is the cluster's admin.
func startSampleController(t *testing.T) *program {
	t.Helper()
	return startProgram(t, sampleController(t), "-kubeconfig="+testCluster.Kubeconfig)
}

// installSampleControllerCRD puts the CRD of sample-controller in the place of
// ours until [installCRDs] or the end of the test. The Foos that other tests have
// left go first: they would use up sample-controller's rate limit.
func installSampleControllerCRD(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "foos", "--all", "--all-namespaces", "--wait=false") // which would be for one after another
	waitUntil(t, "there are no Foos", func(ctx context.Context) error {
		left, err := sample.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("there are %d", len(left.Items))
		}
		return err
	})
	restoreCRDs(t)
	kubectl(t, "replace", "-f", filepath.Join(filepath.Dir(sampleController(t)), cluster.SampleControllerCRD))
	waitCRD(t, false)
}

// installCRDs installs our CRDs over whatever is there.
func installCRDs(t *testing.T) {
	t.Helper()
	kubectl(t, "apply", "-k", manifests(t, "crds"))
	waitCRD(t, true)
}

// waitCRD waits until the API server goes by a CRD of Foos that has been changed:
// to ours, which has spec.image, or to sample-controller's.
func waitCRD(t *testing.T, ours bool) {
	t.Helper()
	waitUntil(t, "the CRD is served", func(ctx context.Context) error {
		foo, err := sample.SamplecontrollerV1alpha1().Foos(metav1.NamespaceDefault).Create(ctx, &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: "probe", Image: "probe"},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore})
		if err == nil && (foo.Spec.Image != "") != ours {
			err = fmt.Errorf("a Foo has the image %q", foo.Spec.Image)
		}
		return err
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// installSampleControllerCRD replaces our CRD by sample-controller's until [installCRDs] or
// the end of the test. It first deletes the Foos of other tests, which would use up
// sample-controller's rate limit.
func installSampleControllerCRD(t *testing.T) {
	t.Helper()
	framework.Kubectl(t, "delete", "foos", "--all", "--all-namespaces", "--wait=false") // waiting would be sequential
	clustertest.WaitUntil(t, "all Foos are gone", func(ctx context.Context) error {
		left, err := framework.Sample().SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d Foos left", len(left.Items))
		}
		return err
	})
	framework.RestoreCRDs(t)
	framework.Kubectl(t, "replace", "-f", sampleControllerCRD(t))
	waitCRD(t, false)
}

// sampleControllerCRD returns the path of the CRD in sample-controller's module.
func sampleControllerCRD(t *testing.T) string {
	t.Helper()
	// Unlike `go list -m`, this downloads a module that is not in the cache.
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/sample-controller")
	command.Dir = framework.Manifests(t, "../hack/tools/samplecontroller")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(module.Dir, "artifacts", "examples", "crd-status-subresource.yaml")
}

// installCRDs installs our CRDs over the existing ones.
func installCRDs(t *testing.T) {
	t.Helper()
	framework.Kubectl(t, "apply", "-k", framework.Manifests(t, "crds"))
	waitCRD(t, true)
}

// waitCRD waits until the API server applies a changed CRD of Foos: ours, which has
// spec.image, or sample-controller's.
func waitCRD(t *testing.T, ours bool) {
	t.Helper()
	clustertest.WaitUntil(t, "the CRD is served", func(ctx context.Context) error {
		foo, err := framework.Sample().SamplecontrollerV1alpha1().Foos(metav1.NamespaceDefault).Create(ctx,
			&samplev1alpha1.Foo{
				ObjectMeta: metav1.ObjectMeta{Name: "probe"},
				Spec:       samplev1alpha1.FooSpec{DeploymentName: "probe", Image: "probe"},
			}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore})
		if err == nil && (foo.Spec.Image != "") != ours {
			err = fmt.Errorf("a Foo has the image %q", foo.Spec.Image)
		}
		return err
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// TestDeployAndUndeploy installs the daemon in a cluster, and removes it again without touching
// the objects.
func TestDeployAndUndeploy(t *testing.T) {
	clustertest.Long(t)
	c, err := cluster.Start(t.Context(), cluster.Options{Nodes: 1, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubectl := func(args ...string) string {
		out, err := c.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	deploy := func(action string, variables ...string) string {
		command := exec.CommandContext(t.Context(), "./hack/deploy.sh", action)
		command.Dir = root
		command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBERC=off", "KUBECACHEDIR="+t.TempDir(),
			"PATH="+filepath.Dir(c.KubectlPath)+":"+os.Getenv("PATH"))
		command.Env = append(command.Env, variables...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", action, err, out)
		}
		return string(out)
	}
	const ours = "--selector=app.kubernetes.io/name=sample-controller-manager"

	image := "registry.example.com:5000/team/sample-controller-manager:v1.2.3"
	deploy("deploy", "IMAGE="+image)
	if got := kubectl("get", "pods", "-n", "sample-controller-manager", "-o", "jsonpath={.items[0].spec.containers[0].image}"); got != image {
		t.Errorf("the Pods run the image %q, want %s", got, image)
	}
	kubectl("apply", "-f", filepath.Join(root, "manifests/examples/foo.yaml"), "-n", "default")

	out := deploy("undeploy")
	if !strings.Contains(out, "Kept: the CRDs") {
		t.Errorf("the output does not say what is kept:\n%s", out)
	}
	if left := kubectl("get", "deployments,pods,services,poddisruptionbudgets,serviceaccounts,roles,rolebindings", "-A", "-o", "name", ours) +
		kubectl("get", "clusterrolebindings", "-o", "name", ours); left != "" {
		t.Errorf("undeploy leaves:\n%s", left)
	}
	kubectl("get", "-n", "default", "foo/example-foo")
	kubectl("get", "namespace/sample-controller-manager")
}

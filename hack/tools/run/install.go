// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// applyExample applies the example Foo and waits until it is Ready, and until the summary of
// its Pods, which another controller writes later, says so too.
func (r *runner) applyExample(ctx context.Context) error {
	// The API server delays creates by two seconds while the CRD is new, but not a server-side
	// apply. It is forced because the user may have scaled the Foo in an earlier run.
	apply := []string{"apply", "--server-side", "--force-conflicts", "-n", "default", "-f", filepath.Join(r.root, exampleFile)}
	if _, err := r.kubectl(ctx, apply...); err != nil {
		return err
	}
	for _, condition := range []string{"condition=Ready", "jsonpath={.status.pods.ready}=1"} {
		if _, err := r.kubectl(ctx, "wait", "-n", "default", "--for="+condition, "--timeout=120s", "foo/"+example); err != nil {
			return err
		}
	}
	return nil
}

// show prints the example's objects, the daemon's address, and what to try next.
func (r *runner) show(ctx context.Context) error {
	objects, err := r.kubectl(ctx, "get", "-n", "default", "-o", "wide", "foo/"+example, "deployment/"+example)
	if err != nil {
		return err
	}
	pods, err := r.kubectl(ctx, "get", "-n", "default", "-o", "wide", "pods", "-l", "controller="+example)
	if err != nil {
		return err
	}
	kubeconfig := "export KUBECONFIG=" + r.admin
	if !kubectlOnPath() {
		kubeconfig += fmt.Sprintf(" PATH=%s:$PATH", filepath.Dir(r.kubectlPath))
	}
	r.screen.text("\n%s\n%s", objects, pods)
	r.screen.text("Daemon   curl --insecure '%s/healthz?verbose'", r.url)
	r.screen.text("Cluster  %s", kubeconfig)
	r.screen.text(`
Try next, in another terminal, after the export above:
  bin/kubectl-scm why foo default/%[1]s --kubeconfig=%[3]s --server=%[2]s --insecure-skip-tls-verify
  kubectl -n default scale foo %[1]s --replicas=3
  kubectl -n default get foo %[1]s --watch
  kubectl -n default delete foo %[1]s

Ctrl-C stops everything. The daemon's log follows.
`, example, r.url, r.admin)
	return nil
}

// farewell prints what remains after everything has stopped.
func (r *runner) farewell() {
	if r.local != nil || !r.installed {
		r.screen.line("Stopped; nothing is left behind")
		return
	}
	kubectl := "kubectl"
	if !kubectlOnPath() {
		kubectl = r.kubectlPath
	}
	kubectl += " --kubeconfig=" + r.admin
	r.screen.line("Stopped. The CRDs, RBAC and the example are still installed. To remove them and every Foo and Icecream:")
	for _, what := range []string{"-f " + exampleFile, "-k manifests/rbac", "-k manifests/cluster"} {
		r.screen.text("  %s delete --ignore-not-found %s", kubectl, what)
	}
}

// kubectl runs kubectl as the cluster admin.
func (r *runner) kubectl(ctx context.Context, args ...string) (stdout string, err error) {
	return cluster.Kubectl(ctx, r.kubectlPath, r.admin, r.dir, args...)
}

func kubectlOnPath() bool {
	_, err := exec.LookPath("kubectl")
	return err == nil
}

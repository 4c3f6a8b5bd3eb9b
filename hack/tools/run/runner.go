// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

const (
	nodes = 3

	// daemonName is the name of the daemon's program, namespace and ServiceAccount.
	daemonName = "sample-controller-manager"
	// pluginName is the name of the kubectl plugin's program.
	pluginName = "kubectl-scm"

	exampleFile = "manifests/examples/foo.yaml"
	// example is the name of the Foo in exampleFile and of its Deployment.
	example = "example-foo"

	// stopGrace is longer than the time that the daemon gives its controllers to stop.
	stopGrace = 30 * time.Second
)

// runner is one run of the command. stop takes down what up has started so far.
type runner struct {
	root   string
	screen screen

	dir         string // the daemon's files
	group       *process.Group
	local       *cluster.Cluster // nil on an existing cluster
	admin       string           // path of the admin's kubeconfig
	kubectlPath string
	daemon      *process.Process
	url         string // of the daemon

	installed bool // whether installation began, even if it failed
}

// up starts everything, waits until the example Foo is Ready and prints what to try next. It returns
// when ctx or the daemon ends.
func (r *runner) up(ctx context.Context, kubeconfig string) error {
	// The control plane is built first: it shares most of the daemon's code, which is then
	// already compiled.
	var programs []string // empty: all programs of a control plane
	if kubeconfig != "" {
		programs = []string{"kubectl"}
	}
	paths, err := cluster.Binaries(ctx, r.screen.out, programs...)
	if err != nil {
		return err
	}
	r.kubectlPath = paths["kubectl"]
	r.screen.line("Building the daemon (takes up to a minute the first time)")
	if err := r.build(ctx); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", daemonName+"-run-"); err != nil {
		return err
	}
	if r.group, err = process.NewGroup(r.dir); err != nil {
		return err
	}
	if err := r.connect(ctx, kubeconfig); err != nil {
		return err
	}
	r.screen.line("Installing CRDs and RBAC")
	r.installed = true
	if err := cluster.Install(ctx, r.root, r.kubectl); err != nil {
		return err
	}
	r.screen.line("Starting the daemon as ServiceAccount %[1]s/%[1]s", daemonName)
	if err := r.startDaemon(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-r.daemon.Done()
		cancel(fmt.Errorf("%w; see its log above", r.daemon.Err()))
	}()
	r.screen.line("Applying " + exampleFile)
	err = r.applyExample(ctx)
	if err == nil {
		r.screen.line("Foo default/%s is Ready", example)
		err = r.show(ctx)
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(context.Cause(ctx), err)
}

// startDaemon starts the built daemon as its own ServiceAccount. It logs to the standard error of this process.
func (r *runner) startDaemon(ctx context.Context) error {
	lifetime := cluster.LocalTokenLifetime
	if r.local == nil {
		lifetime = 24 * time.Hour // on a cluster that outlives this program
	}
	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, r.admin, r.dir, daemonName, daemonName, lifetime)
	if err != nil {
		return err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return err
	}
	r.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	r.daemon, err = r.group.Start(daemonName, os.Stderr, filepath.Join(r.root, "bin", daemonName),
		"--kubeconfig="+kubeconfig,
		"--leader-elect-resource-namespace="+daemonName,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
	)
	return err
}

// stop stops what up has started, in reverse order, and waits for it.
func (r *runner) stop() error {
	var errs []error
	if r.daemon != nil && r.daemon.Err() == nil {
		errs = append(errs, r.daemon.Stop(stopGrace))
		if r.daemon.ExitCode() > 0 {
			errs = append(errs, fmt.Errorf("after SIGTERM: %w", r.daemon.Err()))
		}
	}
	if r.local != nil {
		errs = append(errs, r.local.Stop())
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	if r.group != nil {
		errs = append(errs, r.group.Close())
	}
	return errors.Join(errs...)
}

// build builds the daemon and the kubectl plugin.
func (r *runner) build(ctx context.Context) error {
	for _, command := range []string{daemonName, pluginName} {
		cmd := exec.CommandContext(ctx, filepath.Join("hack", "build.sh"), command)
		cmd.Dir = r.root
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", command, err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

// connect starts a local cluster or, given a kubeconfig, uses an existing one.
func (r *runner) connect(ctx context.Context, kubeconfig string) error {
	if kubeconfig != "" {
		var err error
		if r.admin, err = filepath.Abs(kubeconfig); err != nil {
			return err
		}
		server, err := r.kubectl(ctx, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
		if err != nil {
			return err
		}
		r.screen.line("Using the cluster at %s", server)
		return nil
	}
	r.screen.line("Starting a cluster: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok with %d Nodes", nodes)
	local, err := cluster.Start(ctx, cluster.Options{Nodes: nodes, Progress: r.screen.out})
	if err != nil {
		return err
	}
	r.local, r.admin = local, local.Kubeconfig
	return nil
}

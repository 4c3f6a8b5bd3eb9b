// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

const (
	// startTimeout bounds each step of the start. It is exceeded only if something is wrong or
	// the machine is very busy.
	startTimeout = 3 * time.Minute

	// stopTimeout bounds the shutdown of kube-apiserver and etcd. kube-apiserver waits up to a
	// minute for its requests in flight.
	stopTimeout = 3 * time.Minute

	// stopGrace is how long a component may take to stop. Killing one is not an error: nothing
	// that it would still do matters.
	stopGrace = 5 * time.Second
)

// Options configure a cluster. The zero value is a lone API server.
type Options struct {
	// Nodes is the number of Nodes, node-1 to node-N. With 0, only etcd and kube-apiserver
	// run. The ServiceAccount admission plugin is then off, because nothing creates
	// ServiceAccounts.
	Nodes int
	// AuditLog makes kube-apiserver write the file [Cluster.AuditLog], with the metadata of
	// each request, and the bodies of requests for Leases. The line of a request is written
	// before its response is sent.
	AuditLog bool
	// AuditPolicy replaces the default audit policy. [Cluster.AuditEvents] needs requests to
	// be logged from the stage RequestReceived on.
	AuditPolicy []byte
	// APIServerFlags are added to kube-apiserver's flags or replace them. Names have no
	// leading dashes.
	APIServerFlags map[string]string
	// Progress receives messages about slow steps of the start. May be nil.
	Progress io.Writer
}

// Cluster is a running control plane. Its methods, except Stop, are safe for concurrent use.
type Cluster struct {
	// Dir has all files of the cluster: data, certificates, kubeconfigs, and the components'
	// logs as <component>.log.
	Dir string
	// Kubeconfig is the path of a cluster admin's kubeconfig.
	Kubeconfig string
	// AuditLog is the path of the audit log, empty without [Options.AuditLog].
	AuditLog string
	// KubectlPath is the path of a kubectl of the cluster's version.
	KubectlPath string

	paths      Paths
	config     *rest.Config
	group      *process.Group
	plane      envtest.ControlPlane
	components []*process.Process
	audit      auditLog
	stop       func() error
}

// Start starts a cluster and returns when it can be used: Nodes are Ready and have no taint,
// the ServiceAccount default/default exists, and kube-system has what delegated authentication
// needs. The context bounds the start, not the cluster's lifetime. If it fails, nothing is
// left running.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	names := []string{"etcd", "kube-apiserver", "kubectl"}
	if o.Nodes > 0 {
		names = nil
	}
	paths, err := Binaries(ctx, o.Progress, names...)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sample-controller-manager-")
	if err != nil {
		return nil, fmt.Errorf("making the cluster's directory: %w", err)
	}
	group, err := process.NewGroup(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{Dir: dir, KubectlPath: paths["kubectl"], paths: paths, group: group}
	c.stop = sync.OnceValue(c.tearDown)
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the cluster: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	if err := c.startControlPlane(o); err != nil {
		return err
	}
	// envtest cannot be interrupted, so check here whether the caller gave up.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making the admin's client: %w", err)
	}
	if err := c.await(ctx, client, authenticationPublished); err != nil || o.Nodes == 0 {
		return err
	}
	if err := c.startComponents(); err != nil {
		return err
	}
	if err := createNodes(ctx, client, o.Nodes); err != nil {
		return err
	}
	return c.await(ctx, client, defaultServiceAccountExists, nodesReady)
}

// Stop stops all processes, waits for them and removes [Cluster.Dir]. Further calls do nothing
// and return the same error. The error also reports components that had ended by themselves,
// which may explain failures of the caller.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) tearDown() error {
	died := c.componentErr()
	var wg sync.WaitGroup
	for _, p := range c.components {
		wg.Go(func() { _ = p.Stop(stopGrace) })
	}
	wg.Wait()
	return errors.Join(died, c.plane.Stop(), os.RemoveAll(c.Dir), c.group.Close())
}

// Config returns a cluster admin's client configuration, without client-side rate limit. The
// caller may change it.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubectl runs kubectl as the cluster's admin and returns its standard output. The error
// includes its standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (stdout string, err error) {
	return Kubectl(ctx, c.KubectlPath, c.Kubeconfig, c.Dir, args...)
}

// Kubectl runs the kubectl at path with a kubeconfig and without the user's own settings. Its
// cache is in dir. It returns the standard output. The error includes the standard error.
func Kubectl(ctx context.Context, path, kubeconfig, dir string, args ...string) (stdout string, err error) {
	cmd := exec.CommandContext(ctx, path, append([]string{
		"--kubeconfig=" + kubeconfig,
		"--cache-dir=" + filepath.Join(dir, "kubectl-cache"),
	}, args...)...)
	cmd.Env = append(os.Environ(), "KUBERC=off")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

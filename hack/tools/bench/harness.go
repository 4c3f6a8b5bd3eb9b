// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

// auditPolicy logs no bodies, so that logging costs the API server the same for each kind of
// write.
var auditPolicy = []byte(`{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}`)

const (
	poll      = 200 * time.Millisecond
	stopGrace = 20 * time.Second
)

// harness is an API server that the candidates use one after another.
type harness struct {
	*options
	cluster  *cluster.Cluster
	kube     kubernetes.Interface
	sample   sampleclientset.Interface
	group    *process.Group // of the candidates
	dir      string         // of the group
	binaries string         // the directory of the candidates' binaries
	runs     int
}

func (o *options) startHarness(ctx context.Context, binaries string) (*harness, error) {
	c, err := cluster.Start(ctx, cluster.Options{
		AuditLog: true, AuditPolicy: auditPolicy, Progress: os.Stderr,
		// Fair queuing in the API server must not affect the comparison.
		APIServerFlags: map[string]string{"enable-priority-and-fairness": "false"},
	})
	if err != nil {
		return nil, err
	}
	h := &harness{options: o, cluster: c, binaries: binaries}
	if err = h.furnish(ctx); err != nil {
		err = errors.Join(err, h.stop())
	}
	return h, err
}

func (h *harness) furnish(ctx context.Context) (err error) {
	if h.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	if h.group, err = process.NewGroup(h.dir); err != nil {
		return err
	}
	h.kube, h.sample = kubernetes.NewForConfigOrDie(h.cluster.Config()),
		sampleclientset.NewForConfigOrDie(h.cluster.Config())
	if err := h.cluster.Install(ctx); err != nil {
		return err
	}
	// RBAC authorizes the peers like the daemon. Requests of system:masters would cost the API
	// server less.
	commands := [][]string{
		{"create", "namespace", peers},
		{"create", "clusterrolebinding", peers, "--clusterrole=cluster-admin", "--group=system:serviceaccounts:" + peers},
	}
	for _, c := range candidates {
		if namespace, name := c.serviceAccount(); namespace == peers {
			commands = append(commands, []string{"create", "serviceaccount", "--namespace=" + namespace, name})
		}
	}
	return h.kubectl(ctx, commands...)
}

func (h *harness) kubectl(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if _, err := h.cluster.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig returns the path of a kubeconfig with new credentials of a candidate.
func (h *harness) kubeconfig(ctx context.Context, c candidate) (path string, err error) {
	namespace, name := c.serviceAccount()
	return h.cluster.ServiceAccountKubeconfig(ctx, namespace, name)
}

// start starts a candidate.
func (h *harness) start(c candidate, kubeconfig string) (*process.Process, error) {
	args := []string{"--kubeconfig=" + kubeconfig}
	if c.daemon {
		port, err := cluster.FreePort() // the usual port may be taken
		if err != nil {
			return nil, err
		}
		args = append(args, "--leader-elect-resource-namespace="+daemonName, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))
	}
	h.runs++
	path := filepath.Join(h.binaries, c.binary)
	return h.group.Start(fmt.Sprintf("%s-%d", c.name, h.runs), nil, path, append(args, c.flags...)...)
}

// clear deletes the Foos and Deployments of a namespace.
func (h *harness) clear(ctx context.Context, namespace string) error {
	return errors.Join(
		h.sample.SamplecontrollerV1alpha1().Foos(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}),
		h.kube.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// await waits until check returns nil.
func (h *harness) await(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, h.giveUpAfter, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, errors.Join(last, err))
	}
	return nil
}

// stop stops everything that the harness started.
func (h *harness) stop() error {
	var errs []error
	if h.group != nil {
		errs = append(errs, h.group.Close())
	}
	return errors.Join(append(errs, h.cluster.Stop(), os.RemoveAll(h.dir))...)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

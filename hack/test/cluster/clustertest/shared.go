// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// startTimeout bounds the start of a cluster, including the build of its binaries the first
// time.
const startTimeout = 30 * time.Minute

// Shared is a cluster that the tests of a package share, with the CRDs and roles of the
// manifests installed. The first use of the cluster or of a client starts it, so tests that do
// not need a cluster do not start one. If the start fails, the process exits, because no test
// of the package could pass.
type Shared struct {
	start   func() *clients
	started atomic.Bool
}

type clients struct {
	cluster *cluster.Cluster
	kube    kubernetes.Interface
	sample  sampleclientset.Interface
	dynamic dynamic.Interface
}

// NewShared returns a cluster that has not been started.
func NewShared(options cluster.Options) *Shared {
	s := &Shared{}
	s.start = sync.OnceValue(func() *clients {
		c, err := startShared(options)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		s.started.Store(true)
		return c
	})
	return s
}

func startShared(options cluster.Options) (c *clients, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c = &clients{}
	if c.cluster, err = cluster.Start(ctx, options); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.cluster.Stop())
	}
	return c, nil
}

// prepare creates the clients and installs the CRDs and the roles.
func (c *clients) prepare(ctx context.Context) (err error) {
	config := c.cluster.Config()
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if c.sample, err = sampleclientset.NewForConfig(config); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	return c.cluster.Install(ctx)
}

// Cluster returns the running cluster.
func (s *Shared) Cluster() *cluster.Cluster { return s.start().cluster }

// Kube returns a cluster admin's client.
func (s *Shared) Kube() kubernetes.Interface { return s.start().kube }

// Sample returns a cluster admin's client for Foos and Icecreams.
func (s *Shared) Sample() sampleclientset.Interface { return s.start().sample }

// Dynamic returns a cluster admin's client for objects of any kind.
func (s *Shared) Dynamic() dynamic.Interface { return s.start().dynamic }

// Kubectl runs kubectl as a cluster admin and returns its output.
func (s *Shared) Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.Cluster().Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Audit returns the answered requests that match all conditions, see [cluster.Cluster.AuditEvents].
func (s *Shared) Audit(t *testing.T, conditions ...func(auditv1.Event) bool) []auditv1.Event {
	t.Helper()
	events, err := s.Cluster().AuditEvents(conditions...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Stop stops the cluster if it was started. It returns an error if kstatus disagrees with a
// status in the audit log.
func (s *Shared) Stop() error {
	if !s.started.Load() {
		return nil
	}
	var err error
	if log := s.Cluster().AuditLog; log != "" {
		var verdict string
		verdict, err = judgeStatuses(log)
		fmt.Fprint(os.Stderr, verdict)
	}
	return errors.Join(err, s.Cluster().Stop())
}

// Main runs the tests of a package, stops the cluster and exits. If a test has started the
// cluster, the checks run before it is stopped.
func (s *Shared) Main(m *testing.M, checks ...func() error) {
	code := m.Run()
	var errs []error
	if s.started.Load() {
		for _, check := range checks {
			errs = append(errs, check())
		}
	}
	errs = append(errs, s.Stop())
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/faulty"
)

// The cluster that the tests share, with clients of its admin, and the daemon's
// binary, built with the race detector: one that saw a race exits with 66.
var (
	testCluster *cluster.Cluster
	kube        kubernetes.Interface
	sample      sampleclientset.Interface
	anyKind     dynamic.Interface
	binary      string
)

func TestMain(m *testing.M) {
	faulty.Main()
	if len(os.Args) > 1 && os.Args[1] == stockLeader {
		runStockLeader(os.Args[2:]) // as a replica, for which there is no other program
	}
	// A test waits for the cluster more than it works. The command line may say
	// otherwise, as it is parsed after this.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // the first time, the binaries are built
	defer cancel()
	testCluster, err = cluster.Start(ctx, cluster.Options{Nodes: 3, AuditLog: true, Progress: os.Stderr})
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := testCluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := testCluster.Install(ctx); err != nil {
		return 0, err
	}
	if kube, err = kubernetes.NewForConfig(testCluster.Config()); err != nil {
		return 0, err
	}
	if sample, err = sampleclientset.NewForConfig(testCluster.Config()); err != nil {
		return 0, err
	}
	if anyKind, err = dynamic.NewForConfig(testCluster.Config()); err != nil {
		return 0, err
	}
	binary = filepath.Join(testCluster.Dir, daemonName)
	if err := build(ctx, binary); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, errors.Join(checkPrivileges(code == 0 && allTestsRun()), printFaults(os.Stdout))
}

// build builds the daemon with the race detector, and with these variables of
// hack/build.sh.
func build(ctx context.Context, path string, variables ...string) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "build.sh"))
	cmd.Env = append(append(os.Environ(), "RACE=1", "OUTPUT="+path), variables...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the daemon: %w\n%s", err, output)
	}
	return nil
}

// newNamespace makes a namespace that only this test uses.
func newNamespace(t *testing.T) string {
	t.Helper()
	return clustertest.NewNamespace(t, kube)
}

// waitUntil waits until check returns nil.
func waitUntil(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	clustertest.WaitUntil(t, what, check)
}

// kubectl runs kubectl as a user would and returns what it prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := testCluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

var shared = clustertest.NewShared(cluster.Options{Nodes: 3, AuditLog: true, Progress: os.Stderr})

// Main runs the tests of a package in their own cluster and exits. It fails if the daemon was
// denied a request that no test expected to be denied.
func Main(m *testing.M) {
	// Tests mostly wait. The command line can override this, because it is parsed later.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	shared.Main(m, checkPrivileges, func() error { return printFaults(os.Stdout) })
}

// MainOfAPIServer is [Main] for tests that need an API server alone, and do the work of kube-controller-manager,
// kube-scheduler and kubelets themselves. It fails if the daemon tried to delete a Deployment in any test.
func MainOfAPIServer(m *testing.M) { MainOfAPIServerWith(m, nil) }

// MainOfAPIServerWith is [MainOfAPIServer] with more flags of kube-apiserver, without dashes.
func MainOfAPIServerWith(m *testing.M, flags map[string]string) {
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	shared = newAPIServer(flags)
	shared.Main(m, noDeletions)
}

func newAPIServer(flags map[string]string) *clustertest.Shared {
	return clustertest.NewShared(cluster.Options{AuditLog: true, APIServerFlags: flags, Progress: os.Stderr})
}

// OwnAPIServer makes the test use an API server of its own. No other test may run at the same time.
func OwnAPIServer(t *testing.T) {
	t.Helper()
	theirs, own := shared, newAPIServer(nil)
	shared = own
	t.Cleanup(func() {
		shared = theirs
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// noDeletions returns an error if the daemon tried to delete a Deployment in any test.
func noDeletions() error {
	deletions, err := Cluster().AuditEvents(func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, DaemonName+"/") && strings.HasPrefix(event.Verb, "delete") &&
			event.ObjectRef.Resource == "deployments"
	})
	if err == nil && len(deletions) > 0 {
		ref := deletions[0].ObjectRef
		err = fmt.Errorf("the daemon tried to delete %d Deployments, first %s/%s", len(deletions), ref.Namespace, ref.Name)
	}
	return err
}

// Cluster returns the package's cluster.
func Cluster() *cluster.Cluster { return shared.Cluster() }

// Kube returns a cluster admin's client.
func Kube() kubernetes.Interface { return shared.Kube() }

// Sample returns a cluster admin's client for Foos and Icecreams.
func Sample() sampleclientset.Interface { return shared.Sample() }

// Dynamic returns a cluster admin's client for objects of any kind.
func Dynamic() dynamic.Interface { return shared.Dynamic() }

// NewNamespace creates a namespace for this test and returns its name.
func NewNamespace(t *testing.T) string {
	t.Helper()
	return clustertest.NewNamespace(t, Kube())
}

// Kubectl runs kubectl as a cluster admin and returns its output.
func Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return shared.Kubectl(t, args...)
}

// Audit returns the answered requests that match all conditions.
func Audit(t *testing.T, conditions ...func(auditv1.Event) bool) []auditv1.Event {
	t.Helper()
	return shared.Audit(t, conditions...)
}

// Apply applies a file or a kustomization, given as -f or -k, until the end of the test. A
// warning of the API server is an error.
func Apply(t *testing.T, from, path string) {
	t.Helper()
	Kubectl(t, "apply", "--warnings-as-errors", from, path)
	t.Cleanup(func() {
		if _, err := Cluster().Kubectl(context.WithoutCancel(t.Context()), "delete", from, path); err != nil {
			t.Error(err)
		}
	})
}

// Long skips a test in short mode.
func Long(t *testing.T) {
	t.Helper()
	clustertest.Long(t)
}

// Count returns how many repetitions a test makes: full, or short in short mode.
func Count(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Binary returns the path of the daemon, and Plugin that of the kubectl plugin. All packages
// share the files. The process exits if a build fails.
var (
	Binary = sync.OnceValue(func() string { return mustBuild(DaemonName) })
	Plugin = sync.OnceValue(func() string { return mustBuild(PluginName) })
)

func mustBuild(command string) (path string) {
	path, err := buildShared(command)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return path
}

// buildShared builds a command into _output/e2e. One package builds it while the others wait.
// They then find it up to date in less than a second.
func buildShared(command string) (path string, err error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "_output", "e2e")
	if os.Getenv("RACE") == "1" {
		dir += "-race"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close() // also unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	path = filepath.Join(dir, command)
	return path, build(context.Background(), command, path)
}

// Build builds the daemon with these variables of hack/build.sh. With RACE=1 in the
// environment it uses the race detector, and a process with a data race exits with 66.
func Build(ctx context.Context, path string, variables ...string) error {
	return build(ctx, DaemonName, path, variables...)
}

// BuildCommit builds the daemon of an earlier commit and returns its path. It skips the test if
// the history is not there, as in a shallow clone.
func BuildCommit(t *testing.T, commit string) (path string) {
	t.Helper()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("there is no commit %s: %v", commit, err)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "commit.tar")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "--output=" + archive, commit},
		{"tar", "-xf", archive, "-C", dir},
	} {
		if output, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
	}
	path = filepath.Join(dir, "bin", DaemonName)
	if err := buildIn(t.Context(), dir, DaemonName, path, "BUILD_VERSION=v0.0.1"); err != nil {
		t.Fatal(err)
	}
	return path
}

func build(ctx context.Context, command, path string, variables ...string) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	return buildIn(ctx, root, command, path, variables...)
}

// buildIn builds a command from the sources at root.
func buildIn(ctx context.Context, root, command, path string, variables ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "build.sh"), command)
	cmd.Env = append(append(os.Environ(), "OUTPUT="+path), variables...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", command, err, output)
	}
	return nil
}

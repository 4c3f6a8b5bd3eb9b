// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// expectPasses runs tests of the library against the API server.
func expectPasses(t *testing.T, dir, run string, want int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run="+run, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TEST_KUBECONFIG="+shared.Cluster().Kubeconfig)
	output, err := cmd.CombinedOutput()
	if passed := strings.Count(string(output), "\n--- PASS"); err != nil || passed != want {
		t.Errorf("%d tests pass, %v, want %d:\n%s", passed, err, want, output)
	}
}

// TestExampleTestsPassOnAPIServer runs the example's managertest tests against the API server.
func TestExampleTestsPassOnAPIServer(t *testing.T) {
	expectPasses(t, install(t), "TestQuota|TestGreeting", 2)
	events, err := shared.Cluster().AuditEvents(cluster.ByUserAgent("quota-controller"), cluster.InNamespace("quota"))
	if err != nil || len(events) == 0 {
		t.Errorf("the API server received %d requests, %v, want some", len(events), err)
	}
}

const ops = "staging/src/samplecontroller.io/controller-manager/examples/ops"

// buildOps builds the example with three controllers once, and returns its directory.
var buildOps = sync.OnceValues(func() (dir string, err error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(shared.Cluster().Dir, "ops-manager"), ".")
	cmd.Dir = filepath.Join(root, ops)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the example: %w\n%s", err, output)
	}
	return cmd.Dir, nil
})

// installOps builds the example with three controllers and installs its CRD. It returns the example's
// directory and program.
func installOps(t *testing.T) (dir, program string) {
	t.Helper()
	dir, err := buildOps()
	if err != nil {
		t.Fatal(err)
	}
	shared.Kubectl(t, "apply", "-f", filepath.Join(dir, "backups.yaml"))
	shared.Kubectl(t, "wait", "--for=condition=Established", "crd/backups.ops.example.org")
	return dir, filepath.Join(shared.Cluster().Dir, "ops-manager")
}

// TestOpsOnAPIServer runs the tests of the example with three controllers against the API server.
func TestOpsOnAPIServer(t *testing.T) {
	dir, _ := installOps(t)
	expectPasses(t, dir, "^(TestNamespaceDefaults|TestBackup|TestOldJobIsDeleted)$", 3)
}

// TestDerivedRolesSuffice runs the example with three controllers under the roles that it prints.
func TestDerivedRolesSuffice(t *testing.T) {
	ns := clustertest.NewNamespace(t, shared.Kube())
	_, program := installOps(t)
	roles, err := exec.CommandContext(t.Context(), program, "rbac", "--leader-elect-resource-namespace="+ns).Output()
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(t.TempDir(), "roles.yaml")
	if err := os.WriteFile(manifest, roles, 0o600); err != nil {
		t.Fatal(err)
	}
	account := "--serviceaccount=" + ns + ":ops-manager"
	shared.Kubectl(t, "apply", "-f", manifest)
	shared.Kubectl(t, "create", "serviceaccount", "ops-manager", "-n", ns)
	shared.Kubectl(t, "create", "clusterrolebinding", "ops-manager", "--clusterrole=ops-manager", account)
	for _, in := range []string{ns, "kube-system"} {
		shared.Kubectl(t, "create", "rolebinding", "ops-manager", "-n", in, "--role=ops-manager", account)
	}
	kubeconfig, err := shared.Cluster().ServiceAccountKubeconfig(t.Context(), ns, "ops-manager")
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), program, "preflight", "--kubeconfig="+kubeconfig, "--leader-elect-resource-namespace="+ns)
	if output, err := check.CombinedOutput(); err != nil || strings.Contains(string(output), "may not") {
		t.Errorf("preflight with the printed roles: %v\n%s", err, output)
	}
}

// TestRecordedAnswers compares the answers of the API server with those that the library's in-memory
// API server gives. After an upgrade of Kubernetes, record them again with -update.
func TestRecordedAnswers(t *testing.T) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "staging/src/samplecontroller.io/controller-manager/internal/fakeapi")
	expectPasses(t, dir, "^TestAnswers$", 1)
}

// inBothPlaces are the tests of managertest that pass in memory and on a real API server.
var inBothPlaces = []string{
	"TestServiceWithTwoProtocols", "TestUnknownFieldsSurvive", "TestStaleWriteIsRejected",
	"TestClusterScopedOwner", "TestReferredObjects", "TestWatchedObjects", "TestMetadataOnlyReader",
	"TestFinalizer", "TestPatchAndStatus", "TestPatchThatChangesNothingIsTold", "TestInvalidStatusIsRejected",
	"TestCompactRecords", "TestRecordOfUndecodableObject", "TestCompactMetadata",
	"TestTwoQueuesInOneController", "TestPacedStatus", "TestSource", "TestListsOfOthersSurvive",
	"TestForeignConditionsSurvive", "TestObjectOfOtherProgramIsNotDeleted", "TestQuotaDenial",
	"TestPolicyDenial", "TestUserErrorIsReportedOnce", "TestRetryAfterEndsByItself", "TestGetOfOwnedObject",
	"TestOnDeletion", "TestIrregularPlural", "TestObjectOfReplacedProgramIsDeleted",
	"TestObjectsAreCounted", "TestExplanation", "TestOlderCRD", "TestOlderCRDOfOwnedKind",
}

// TestControllersOnAPIServer runs the tests of the library's controllers whose result depends on the
// API server, such as on how it applies patches.
func TestControllersOnAPIServer(t *testing.T) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "staging/src/samplecontroller.io/controller-manager/managertest")
	shared.Kubectl(t, "apply", "-f", filepath.Join(dir, "testdata/widgets.yaml"))
	shared.Kubectl(t, "wait", "--for=condition=Established", "crd/widgets.test.example.com")
	expectPasses(t, dir, "^("+strings.Join(inBothPlaces, "|")+")$", len(inBothPlaces))
	inNamespace := cluster.InNamespace("ensure-stale-field")
	events, err := shared.Cluster().AuditEvents(cluster.ByUserAgent("owner-controller"), inNamespace)
	if err != nil || len(events) == 0 {
		t.Errorf("the API server received %d requests, %v, want some", len(events), err)
	}
}

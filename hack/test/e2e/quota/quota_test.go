// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota tests the library's example, and with it the typed layer of package
// controller, with an API server.
package quota

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

var shared = clustertest.NewShared(cluster.Options{AuditLog: true, Progress: os.Stderr})

func TestMain(m *testing.M) { shared.Main(m) }

const example = "staging/src/samplecontroller.io/controller-manager/examples/quota"

// build builds the example once, with the flags of hack/test.sh, and returns its directory.
var build = sync.OnceValues(func() (dir string, err error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	args := []string{"build", "-buildvcs=false", "-o", filepath.Join(shared.Cluster().Dir, "quota-manager")}
	if os.Getenv("RACE") == "1" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = filepath.Join(root, example)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the example: %w\n%s", err, output)
	}
	return cmd.Dir, nil
})

// install builds the example and installs its CRD, and returns the example's directory.
func install(t *testing.T) (dir string) {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	shared.Kubectl(t, "apply", "-f", filepath.Join(dir, "greetings.yaml"))
	shared.Kubectl(t, "wait", "--for=condition=Established", "crd/greetings.example.com")
	return dir
}

// start starts the example for one namespace, which also has its Lease.
func start(t *testing.T, ns string, flags ...string) *framework.Program {
	t.Helper()
	install(t)
	return framework.StartProgram(t, filepath.Join(shared.Cluster().Dir, "quota-manager"), append([]string{
		"--kubeconfig=" + shared.Cluster().Kubeconfig, "--namespace=" + ns, "--leader-elect-resource-namespace=" + ns, "--secure-port=0",
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--write-timeout=20s",
	}, flags...)...)
}

// writes returns how often a controller tried each write in the namespace.
func writes(t *testing.T, ns, controller string) map[string]int {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(controller), cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return event.Verb != "list"
	})
	counts := map[string]int{}
	for _, event := range events {
		counts[fmt.Sprintf("%s %s: %d", cluster.Call(event), event.ObjectRef.Name, event.ResponseStatus.Code)]++
	}
	return counts
}

func wantWrites(t *testing.T, ns, controller string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, writes(t, ns, controller)); diff != "" {
		t.Errorf("writes of %s (-want +got):\n%s", controller, diff)
	}
}

// configMap creates or changes a ConfigMap that wants a quota.
func configMap(t *testing.T, ns, name, pods string) {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "configmap.yaml")
	content := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {example.com/quota: \"true\"}}, data: {pods: %q}}", name, pods)
	if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	shared.Kubectl(t, "-n", ns, "apply", "-f", manifest)
}

// waitQuota waits until the quota allows this many Pods, or, with "", until it does not exist.
func waitQuota(t *testing.T, ns, name, pods string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("quota %s allows %q Pods", name, pods), func(ctx context.Context) error {
		quota, err := shared.Kube().CoreV1().ResourceQuotas(ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && pods == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if got := quota.Spec.Hard.Pods().String(); got != pods {
			return fmt.Errorf("the quota allows %s", got)
		}
		return nil
	})
}

// waitEvent waits until a Warning about the object has been recorded.
func waitEvent(t *testing.T, ns, name, reason string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s has the Event %s", name, reason), func(ctx context.Context) error {
		events, err := shared.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{
			FieldSelector: "type=Warning,involvedObject.name=" + name + ",reason=" + reason,
		})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("it has none")
		}
		return err
	})
}

func TestForeignObjectStaysUntouched(t *testing.T) {
	ns := clustertest.NewNamespace(t, shared.Kube())
	shared.Kubectl(t, "-n", ns, "create", "quota", "a", "--hard=pods=7")
	start(t, ns)
	configMap(t, ns, "a", "3")
	waitEvent(t, ns, "a", "NotOwned")
	waitQuota(t, ns, "a", "7")
	shared.Kubectl(t, "-n", ns, "label", "configmap", "a", "example.com/quota-")
	configMap(t, ns, "marker", "1")
	waitQuota(t, ns, "marker", "1")
	waitQuota(t, ns, "a", "7")
	wantWrites(t, ns, "quota-controller", map[string]int{"create resourcequotas marker: 201": 1})
}

// startDelayed starts the example behind a proxy that delays a watch.
func startDelayed(t *testing.T, ns, resource string) *clustertest.Delayer {
	t.Helper()
	shared.Kubectl(t, "create", "clusterrolebinding", ns, "--clusterrole=cluster-admin", "--serviceaccount="+ns+":default")
	shared.Kubectl(t, "-n", ns, "create", "serviceaccount", "default")
	delayer := clustertest.StartDelayer(t, shared.Cluster(), "/api/v1/namespaces/"+ns+"/"+resource)
	program := start(t, ns, "--kubeconfig="+delayer.Kubeconfig(t, ns, "default"))
	program.WaitLog(`"Starting workers" controller="quota-controller"`)
	return delayer
}

// TestStaleCacheReadsOwnWrites delays the watch of quotas, and touches a ConfigMap until its
// quota is visible.
func TestStaleCacheReadsOwnWrites(t *testing.T) {
	const late = 5 * time.Second
	ns := clustertest.NewNamespace(t, shared.Kube())
	delayer := startDelayed(t, ns, "resourcequotas")
	delayer.By(late)
	configMap(t, ns, "a", "3")
	waitQuota(t, ns, "a", "3")
	for began := time.Now(); time.Since(began) < late; time.Sleep(late / 20) {
		shared.Kubectl(t, "-n", ns, "annotate", "--overwrite", "configmap", "a", fmt.Sprintf("touched=%v", time.Since(began)))
	}
	configMap(t, ns, "a", "4")
	waitQuota(t, ns, "a", "4")
	wantWrites(t, ns, "quota-controller", map[string]int{"create resourcequotas a: 201": 1, "patch resourcequotas a: 200": 1})
}

// TestOwnerMissingInCacheLosesNothing holds the watch of ConfigMaps while a ConfigMap appears
// that owns a quota.
func TestOwnerMissingInCacheLosesNothing(t *testing.T) {
	ns := clustertest.NewNamespace(t, shared.Kube())
	release := startDelayed(t, ns, "configmaps").Hold()
	configMap(t, ns, "a", "3")
	owner, err := shared.Kube().CoreV1().ConfigMaps(ns).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{
		Name: "a", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner,
			corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
	}}
	if _, err := shared.Kube().CoreV1().ResourceQuotas(ns).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.WaitUntil(t, "the owner is requested", func(context.Context) error {
		events, err := shared.Cluster().AuditEvents(cluster.ByUserAgent("quota-controller"), cluster.InNamespace(ns))
		if err == nil && len(events) == 0 {
			err = errors.New("no request")
		}
		return err
	})
	release()
	waitQuota(t, ns, "a", "3")
	wantWrites(t, ns, "quota-controller", map[string]int{"patch resourcequotas a: 200": 1})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/e2e/isolation/faulty"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// faultyReplica is a replica of the daemon with an additional controller, which ConfigMaps of
// a namespace control.
type faultyReplica struct {
	*framework.Replica
	ns    string
	token string // of a caller who may read its pages
}

// allowFaulty grants the daemon the rights of the faulty controller until the end of the test.
func allowFaulty(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: faulty.ControllerName}
	_, err := framework.Kube().RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: faulty.Descriptor().Rules}, metav1.CreateOptions{})
	if err == nil {
		_, err = framework.Kube().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: framework.DaemonName,
				Name: framework.DaemonName}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := framework.Kube().RbacV1().ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		if err := errors.Join(err, framework.Kube().RbacV1().ClusterRoles().Delete(ctx, meta.Name,
			metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
}

func startFaulty(t *testing.T, ns, token string, flags ...string) *faultyReplica {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName,
		framework.DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	port := framework.FreePort(t)
	args := slices.Concat([]string{faulty.Argument}, framework.ReplicaFlags(kubeconfig, port), flags)
	r := &framework.Replica{URL: fmt.Sprintf("https://127.0.0.1:%d", port), Program: framework.StartProgram(t, self, args...)}
	return &faultyReplica{r.Ready(), ns, token}
}

// in returns the replica for use in a subtest.
func (r *faultyReplica) in(t *testing.T) *faultyReplica {
	p := *r.Program
	p.T = t
	return &faultyReplica{&framework.Replica{Program: &p, URL: r.URL}, r.ns, r.token}
}

// poison sets a fault in a ConfigMap, which it creates if it does not exist.
func (r *faultyReplica) poison(name, fault string) {
	r.T.Helper()
	r.apply(name, map[string]string{faulty.Fault: fault})
}

// repair removes the fault of a ConfigMap, or creates one without a fault. It returns how long
// the controller took to sync it.
func (r *faultyReplica) repair(name string) time.Duration {
	r.T.Helper()
	began := time.Now()
	version := strconv.FormatInt(began.UnixNano(), 10)
	r.apply(name, map[string]string{faulty.Served: version})
	r.WaitLog(strconv.Quote(version))
	return time.Since(began)
}

func (r *faultyReplica) apply(name string, data map[string]string) {
	r.T.Helper()
	_, err := framework.Kube().CoreV1().ConfigMaps(r.ns).Apply(r.T.Context(),
		corev1apply.ConfigMap(name, r.ns).WithData(data), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		r.T.Fatal(err)
	}
}

// serveOne makes the faulty controller sync one more ConfigMap, and returns how long that
// took.
func (r *faultyReplica) serveOne() time.Duration {
	r.T.Helper()
	return r.repair(fmt.Sprintf("good-%d", time.Now().UnixNano()))
}

// othersServe makes each of the other controllers sync a new object, and returns how long it
// took until both were Ready.
func (r *faultyReplica) othersServe() time.Duration {
	r.T.Helper()
	began := time.Now()
	name := fmt.Sprintf("other-%d-", began.UnixNano())
	for _, k := range framework.Kinds {
		k.Create(r.T, r.ns, name+k.Singular, 1)
	}
	for _, k := range framework.Kinds {
		k.WaitReady(r.T, r.ns, name+k.Singular, 1)
		k.WaitPodsReported(r.T, r.ns, name+k.Singular, 1)
	}
	return time.Since(began)
}

// failing returns the names of the failing checks of a path.
func failing(ctx context.Context, r *framework.Replica, path string) ([]string, error) {
	code, body, err := r.Get(ctx, path+"?verbose")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range failed.FindAllStringSubmatch(body, -1) {
		names = append(names, match[1])
	}
	if (code == http.StatusOK) != (len(names) == 0) || !strings.Contains(body, "[+]") {
		return nil, fmt.Errorf("%s: status %d: %s", path, code, body)
	}
	return names, nil
}

// failed matches a failed check.
var failed = regexp.MustCompile(`(?m)^\[-\](\S+) `)

// waitFailing waits until exactly these checks of a path fail.
func waitFailing(r *framework.Replica, path string, want ...string) {
	r.T.Helper()
	clustertest.WaitUntil(r.T, fmt.Sprintf("the failing checks of %s are %q", path, want), func(ctx context.Context) error {
		got, err := failing(ctx, r, path)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("failing checks: %q", got)
		}
		return err
	})
}

// waitTold waits until the debug page of the faulty controller contains a text.
func (r *faultyReplica) waitTold(what string) {
	r.T.Helper()
	r.GetPage("/debug/controllers/"+faulty.ControllerName, r.token, http.StatusOK, what)
}

// waitHealthy waits until no check of the replica fails. A machine that pauses the replica may make
// a check fail for a moment.
func waitHealthy(r *framework.Replica) {
	r.T.Helper()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		waitFailing(r, path)
	}
}

// syncs returns how many syncs of the faulty controller ended with this result.
func (r *faultyReplica) syncs(result string) int {
	r.T.Helper()
	return int(r.Value(fmt.Sprintf("sample_controller_manager_sync_total{controller=%q,result=%q}", faulty.ControllerName, result)))
}

// failingObjects returns how many objects of the faulty controller are failing.
func (r *faultyReplica) failingObjects() int {
	r.T.Helper()
	return int(r.Value(fmt.Sprintf("sample_controller_manager_failing_objects{controller=%q}", faulty.ControllerName)))
}

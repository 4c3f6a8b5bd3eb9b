// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

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

	"samplecontroller.io/sample-controller-manager/hack/faulty"
)

// faultyReplica is a replica of the daemon with a controller more, that does as the
// ConfigMaps of a namespace say.
type faultyReplica struct {
	*replica
	ns    string
	token string // of somebody who may see its pages
}

// allowFaulty grants the daemon what the faulty controller needs, until the end of the
// test.
func allowFaulty(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: faulty.ControllerName}
	_, err := kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: faulty.Descriptor().Rules}, metav1.CreateOptions{})
	if err == nil {
		_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: daemonName, Name: daemonName}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := kube.RbacV1().ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		if err := errors.Join(err, kube.RbacV1().ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{})); err != nil {
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
	kubeconfig, err := testCluster.ServiceAccountKubeconfig(t.Context(), daemonName, daemonName)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	args := slices.Concat([]string{faulty.Argument}, replicaFlags(kubeconfig, port), flags)
	r := &replica{url: fmt.Sprintf("https://127.0.0.1:%d", port), program: startProgram(t, self, args...)}
	return &faultyReplica{r.ready(), ns, token}
}

// in returns the replica as one that a subtest uses.
func (r *faultyReplica) in(t *testing.T) *faultyReplica {
	p := *r.program
	p.t = t
	return &faultyReplica{&replica{&p, r.url}, r.ns, r.token}
}

// poison has the faulty controller do something for a ConfigMap, which is made if there
// is none of that name.
func (r *faultyReplica) poison(name, fault string) {
	r.t.Helper()
	r.apply(name, map[string]string{faulty.Fault: fault})
}

// mend takes the fault of a ConfigMap away, or makes one without, and returns how long it
// took until the controller had served it.
func (r *faultyReplica) mend(name string) time.Duration {
	r.t.Helper()
	began := time.Now()
	version := strconv.FormatInt(began.UnixNano(), 10)
	r.apply(name, map[string]string{faulty.Served: version})
	waitUntil(r.t, "the faulty controller has served "+name, func(context.Context) error {
		if !strings.Contains(r.log.String(), strconv.Quote(version)) {
			return errors.New("not yet")
		}
		return nil
	})
	return time.Since(began)
}

func (r *faultyReplica) apply(name string, data map[string]string) {
	r.t.Helper()
	_, err := kube.CoreV1().ConfigMaps(r.ns).Apply(r.t.Context(), corev1apply.ConfigMap(name, r.ns).WithData(data), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
}

// serveOne has the faulty controller serve one more ConfigMap, and returns how long that
// took.
func (r *faultyReplica) serveOne() time.Duration {
	r.t.Helper()
	return r.mend(fmt.Sprintf("good-%d", time.Now().UnixNano()))
}

// othersServe has each of the other controllers serve a new object, and returns how long
// it took until both were ready.
func (r *faultyReplica) othersServe() time.Duration {
	r.t.Helper()
	began := time.Now()
	name := fmt.Sprintf("other-%d-", began.UnixNano())
	for _, k := range kinds {
		k.create(r.t, r.ns, name+k.singular, 1)
	}
	for _, k := range kinds {
		k.waitReady(r.t, r.ns, name+k.singular, 1)
		k.waitTold(r.t, r.ns, name+k.singular, 1)
	}
	return time.Since(began)
}

// failing returns the names of the checks of a path that fail.
func (r *replica) failing(ctx context.Context, path string) ([]string, error) {
	code, body, err := r.get(ctx, path+"?verbose")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range failed.FindAllStringSubmatch(body, -1) {
		names = append(names, match[1])
	}
	if (code == http.StatusOK) != (len(names) == 0) || !strings.Contains(body, "[+]") {
		return nil, fmt.Errorf("%s answers %d and says: %s", path, code, body)
	}
	return names, nil
}

// failed matches a check that fails.
var failed = regexp.MustCompile(`(?m)^\[-\](\S+) `)

// waitFailing waits until just these checks of a path fail.
func (r *replica) waitFailing(path string, want ...string) {
	r.t.Helper()
	waitUntil(r.t, fmt.Sprintf("the failing checks of %s are %q", path, want), func(ctx context.Context) error {
		got, err := r.failing(ctx, path)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%q fail", got)
		}
		return err
	})
}

// waitTold waits until the page of the faulty controller tells something.
func (r *faultyReplica) waitTold(what string) {
	r.t.Helper()
	waitUntil(r.t, fmt.Sprintf("the page of the controller tells %q", what), func(ctx context.Context) error {
		code, body, err := r.getAs(ctx, r.token, "/debug/controllers/"+faulty.ControllerName)
		if err == nil && !strings.Contains(body, what) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}

// wantHealthy checks that no check of the replica fails.
func (r *replica) wantHealthy() {
	r.t.Helper()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		failing, err := r.failing(r.t.Context(), path)
		if err != nil || len(failing) > 0 {
			r.t.Errorf("of %s fail %q, %v, want none", path, failing, err)
		}
	}
}

// syncs returns how many syncs of the faulty controller have ended so.
func (r *faultyReplica) syncs(result string) int {
	r.t.Helper()
	return r.metric(r.token, fmt.Sprintf("sync_total{controller=%q,result=%q}", faulty.ControllerName, result))
}

// failingObjects returns how many objects of the faulty controller fail.
func (r *faultyReplica) failingObjects() int {
	r.t.Helper()
	return r.metric(r.token, fmt.Sprintf("failing_objects{controller=%q}", faulty.ControllerName))
}

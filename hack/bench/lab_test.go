// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

const (
	fooCount  = 5000
	namespace = "bench" // of the Foos, and of all that is the stock peer's

	// quiet is for how long nothing must have been written before a round.
	quiet = 2 * time.Second
	// patience bounds each wait, also on a machine that has much else to do.
	patience = 5 * time.Minute
)

// lab is an API server. There is no kube-controller-manager: Deployments never become
// available, which takes nobody's time.
type lab struct {
	cluster *cluster.Cluster
	kube    kubernetes.Interface
	sample  sampleclientset.Interface
	dir     string
	group   *process.Group // of the replicas, which must not outlive the benchmark
	daemon  string         // the path of its binary
	foos    chan string    // the Foos that nobody has changed yet, in any order
	started atomic.Int32   // replicas so far

	restarts    []atomic.Int32 // of the container of each Pod
	replicaSets sync.Map       // of each Foo of BenchmarkMemory, by its number
	replicas    int            // that a Foo was given last; each number is given once
}

// startLab starts a lab and furnishes it.
func startLab(ctx context.Context, furnish func(*lab, context.Context) error) (*lab, error) {
	c, err := cluster.Start(ctx, cluster.Options{AuditLog: true, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	l := &lab{cluster: c}
	err = l.prepare(ctx)
	if err == nil {
		err = furnish(l, ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

// newLab starts a lab for a benchmark.
func newLab(b *testing.B, furnish func(*lab, context.Context) error) *lab {
	b.Helper()
	l, err := startLab(b.Context(), furnish)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.stop(); err != nil {
			b.Error(err)
		}
	})
	return l
}

func (l *lab) prepare(ctx context.Context) (err error) {
	if l.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	if l.group, err = process.NewGroup(l.dir); err != nil {
		return err
	}
	l.daemon = filepath.Join(l.dir, daemonName)
	if err := build(ctx, l.daemon); err != nil {
		return err
	}
	if l.kube, err = kubernetes.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if l.sample, err = sampleclientset.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if err := l.cluster.Install(ctx); err != nil {
		return err
	}
	_, err = l.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	return err
}

// build builds the daemon as for production, without the race detector.
func build(ctx context.Context, path string) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "build.sh"))
	cmd.Env = append(os.Environ(), "OUTPUT="+path)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the daemon: %w\n%s", err, output)
	}
	return nil
}

func (l *lab) createFoos(ctx context.Context) error {
	l.foos = make(chan string, fooCount)
	for _, i := range rand.Perm(fooCount) {
		l.foos <- fooName(i)
	}
	errs := make([]error, fooCount)
	workqueue.ParallelizeUntil(ctx, 16, fooCount, func(i int) {
		_, errs[i] = l.sample.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: fooName(i)},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: fooName(i), Replicas: ptr.To[int32](0)},
		}, metav1.CreateOptions{})
	})
	return errors.Join(append(errs, ctx.Err())...)
}

func fooName(i int) string { return fmt.Sprintf("foo-%04d", i) }

// patchFoo changes a Foo as its user would.
func (l *lab) patchFoo(ctx context.Context, name, patch string) error {
	_, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// waitQuiet waits until there is a Deployment for each Foo and nobody writes any more.
func (l *lab) waitQuiet(ctx context.Context) error {
	return await(ctx, "the Deployments are there and nothing is written", time.Second, func() error {
		list, err := l.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if n := len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)); n < fooCount {
			return fmt.Errorf("there are %d Deployments", n)
		}
		since := time.Now().Add(-quiet)
		writes, err := l.cluster.AuditEvents(cluster.InNamespace(namespace), func(event auditv1.Event) bool {
			return event.RequestReceivedTimestamp.After(since) && event.Verb == "patch"
		})
		if err == nil && len(writes) > 0 {
			err = fmt.Errorf("%d writes in %v", len(writes), quiet)
		}
		return err
	})
}

// allow makes a ServiceAccount, and grants it rules in the namespace of the Foos.
func (l *lab) allow(ctx context.Context, account string, rules ...rbacv1.PolicyRule) error {
	name := metav1.ObjectMeta{Namespace: namespace, Name: account}
	_, err := l.kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.kube.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name.Name}},
	}, metav1.CreateOptions{})
	return err
}

// await waits until check returns nil.
func await(ctx context.Context, what string, interval time.Duration, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, errors.Join(last, err))
	}
	return nil
}

// stop ends all. What was not begun is not to be ended.
func (l *lab) stop() error {
	var errs []error
	if l.group != nil {
		errs = append(errs, l.group.Close())
	}
	return errors.Join(append(errs, l.cluster.Stop(), os.RemoveAll(l.dir))...)
}

// loadAverage is how busy the machine was in the last minute, as far as it says.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(content), " ")
	return load
}

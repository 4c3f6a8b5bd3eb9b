// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	samplev1alpha1apply "samplecontroller.io/client-go/applyconfiguration/samplecontroller/v1alpha1"
	sampleclientset "samplecontroller.io/client-go/clientset/versioned"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"
)

// teller is the argument that makes the binary of the benchmark a program that decodes
// what the decoder does, and makes the writes that cannot be avoided: each second one for
// each Foo whose Pods have changed. It is what the daemon cannot do without.
//
// It believes labels, counts what one Pod of these after the other adds, and never looks
// back: no Pod fails, goes or changes hands here.
const teller = "teller"

// allowTeller grants the teller what it needs.
func (l *lab) allowTeller(ctx context.Context) error {
	return l.allow(ctx, teller,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{samplev1alpha1.GroupName}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{samplev1alpha1.GroupName}, Resources: []string{"foos/status"}, Verbs: []string{"patch"}})
}

// tellerOfFoos is a teller at work.
type tellerOfFoos struct {
	client sampleclientset.Interface
	foos   cache.Store
	queue  workqueue.TypedDelayingInterface[string]

	mutex sync.Mutex
	all   map[string]*counted
}

// counted is what the Pods of a Foo say, and when that may be written.
type counted struct {
	summary workloadv1alpha1.PodSummary
	changed bool
	next    time.Time
	version string // of the last write
}

// runTeller does not return.
func runTeller(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client := sampleclientset.NewForConfigOrDie(config)
	pods := podsOf(kubernetes.NewForConfigOrDie(config), func(pod *corev1.Pod) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels},
			Status:     corev1.PodStatus{Phase: pod.Status.Phase, ContainerStatuses: pod.Status.ContainerStatuses},
		}
	})
	foos := sampleinformers.NewSharedInformerFactoryWithOptions(client, 0, sampleinformers.WithNamespace(namespace))
	t := &tellerOfFoos{
		client: client,
		foos:   foos.Samplecontroller().V1alpha1().Foos().Informer().GetStore(),
		queue:  workqueue.NewTypedDelayingQueue[string](),
		all:    map[string]*counted{},
	}
	if _, err := pods.Core().V1().Pods().Informer().AddEventHandler(t); err != nil {
		panic(err)
	}
	foos.StartWithContext(ctx)
	foos.WaitForCacheSyncWithContext(ctx)
	pods.StartWithContext(ctx)
	pods.WaitForCacheSyncWithContext(ctx)
	for range 10 { // as many as the daemon has
		go t.work(ctx)
	}
	fmt.Println(standsBy)
	<-ctx.Done()
	os.Exit(0)
}

// OnAdd implements cache.ResourceEventHandler.
func (t *tellerOfFoos) OnAdd(object any, _ bool) { t.count(nil, object.(*corev1.Pod)) }

// OnUpdate implements cache.ResourceEventHandler.
func (t *tellerOfFoos) OnUpdate(before, now any) { t.count(before.(*corev1.Pod), now.(*corev1.Pod)) }

// OnDelete implements cache.ResourceEventHandler.
func (t *tellerOfFoos) OnDelete(any) {}

// count adds what a Pod says that it did not say before, and has that told in time.
func (t *tellerOfFoos) count(before, now *corev1.Pod) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	foo := now.Labels["controller"]
	c := t.all[foo]
	if c == nil {
		c = &counted{}
		t.all[foo] = c
	}
	add(&c.summary, now, 1)
	if before != nil {
		add(&c.summary, before, -1)
	}
	if !c.changed {
		c.changed = true
		t.queue.AddAfter(foo, time.Until(c.next))
	}
}

func add(s *workloadv1alpha1.PodSummary, pod *corev1.Pod, n int32) {
	s.Total += n
	if pod.Status.Phase == corev1.PodRunning {
		s.Running += n
	} else {
		s.Pending += n
	}
	for _, c := range pod.Status.ContainerStatuses {
		s.Restarts += int64(n * c.RestartCount)
		if c.Ready {
			s.Ready += n
		}
	}
}

func (t *tellerOfFoos) work(ctx context.Context) {
	for {
		foo, shutDown := t.queue.Get()
		if shutDown {
			return
		}
		if err := t.tell(ctx, foo); err != nil {
			fmt.Fprintln(os.Stderr, err)
			t.queue.AddAfter(foo, aggregationInterval/10)
		}
		t.queue.Done(foo)
	}
}

// tell writes the status of a Foo, to the very version that it knows of it.
func (t *tellerOfFoos) tell(ctx context.Context, name string) error {
	object, exists, err := t.foos.GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return fmt.Errorf("there is no Foo %s: %w", name, err)
	}
	foo := object.(*samplev1alpha1.Foo)
	t.mutex.Lock()
	c := t.all[name]
	if wait := time.Until(c.next); wait > 0 {
		t.mutex.Unlock()
		t.queue.AddAfter(name, wait)
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(foo.ResourceVersion, c.version); c.version != "" && err == nil && order < 0 {
		t.mutex.Unlock()
		return fmt.Errorf("the cache is late for Foo %s", name)
	}
	summary := c.summary
	c.changed = false
	t.mutex.Unlock()

	// As much as the daemon writes.
	summary.Nodes = []workloadv1alpha1.NodeSummary{{Name: podNode, Pods: summary.Total, Ready: summary.Ready}}
	summary.Problems = []workloadv1alpha1.PodProblem{}
	summary.Summary = fmt.Sprintf("%d/%d ready on %s (%d)", summary.Ready, summary.Total, podNode, summary.Total)
	applied, err := t.client.SamplecontrollerV1alpha1().Foos(namespace).ApplyStatus(ctx,
		samplev1alpha1apply.Foo(name, namespace).WithResourceVersion(foo.ResourceVersion).WithStatus(samplev1alpha1apply.FooStatus().WithPods(summary)),
		metav1.ApplyOptions{FieldManager: "status-aggregator-controller", Force: true}) // whose fields these are by turns
	if err != nil {
		return err
	}
	t.mutex.Lock()
	c.version, c.next = applied.ResourceVersion, time.Now().Add(aggregationInterval)
	t.mutex.Unlock()
	return nil
}

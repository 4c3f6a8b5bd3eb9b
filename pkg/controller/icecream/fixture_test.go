// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/ptr"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// program is the running program, with the Icecream default/example, its Deployment web and the ReplicaSet
// web-1 of that.
type program struct {
	*testing.T
	*managertest.Env
	log        *syncedBuffer
	controller controller.Controller
}

func run(t *testing.T, body func(p *program)) {
	t.Helper()
	log, d := &syncedBuffer{}, Descriptor()
	logger := loggerTo(log)
	var built controller.Controller
	d.New = func(ctx context.Context, c *controller.Context) (_ controller.Controller, err error) {
		built, err = newController(klog.NewContext(ctx, logger), c)
		return built, err
	}
	m := manager.Program{Name: "test", Scheme: samplescheme.AddToScheme, Controllers: []controller.Descriptor{d}}
	managertest.Run(t, m, func(t *testing.T, e *managertest.Env) {
		e.InstallCRDs("../../../manifests/crds/controller.nicoleh.io_icecreams.yaml")
		p := &program{t, e, log, built}
		p.Create(example())
		p.settle()
		p.Create(p.replicaSetOf("web"))
		p.settle()
		body(p)
	})
}

// settle waits until the statuses are written, also those that only report progress.
func (p *program) settle() {
	p.Helper()
	p.Settle()
	time.Sleep(time.Second)
	p.Settle()
}

// during takes steps while a call for the Icecream waits for its first write.
func (p *program) during(steps ...func(*program)) {
	p.Helper()
	release := make(chan struct{})
	p.BeforeWrite(func(string, *http.Request) error { <-release; return nil })
	p.icecream(func(i *icecreamv1alpha1.Icecream) { i.Spec.Replicas = ptr.To(ptr.Deref(i.Spec.Replicas, 1) + 1) })
	synctest.Wait()
	for _, step := range steps {
		step(p)
		synctest.Wait()
	}
	p.BeforeWrite(nil)
	close(release)
	p.settle()
}

// during returns a step that takes others while a call for the Icecream is running.
func during(steps ...func(*program)) func(*program) {
	return func(p *program) { p.during(steps...) }
}

func (p *program) icecream(change func(*icecreamv1alpha1.Icecream)) {
	managertest.Update(p.Env, "default", "example", change)
}

func example() *icecreamv1alpha1.Icecream {
	return &icecreamv1alpha1.Icecream{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example"},
		Spec:       icecreamv1alpha1.IcecreamSpec{DeploymentName: "web"},
	}
}

// replicaSetOf returns the ReplicaSet to create for a Deployment.
func (p *program) replicaSetOf(deployment string) *appsv1.ReplicaSet {
	p.Helper()
	d, ok := managertest.Get[*appsv1.Deployment](p.Env, "default", deployment)
	if !ok {
		p.Fatalf("there is no Deployment %s", deployment)
	}
	rs := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}}
	rs.ObjectMeta = owned(deployment+"-1", d, "Deployment", d.Spec.Selector.MatchLabels)
	return rs
}

func owned(name string, owner metav1.Object, kind string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind)),
	}}
}

// podOf returns a Pod to create for a ReplicaSet.
func (p *program) podOf(replicaSet, name, node string) *corev1.Pod {
	p.Helper()
	rs, ok := managertest.Get[*appsv1.ReplicaSet](p.Env, "default", replicaSet)
	if !ok {
		p.Fatalf("there is no ReplicaSet %s", replicaSet)
	}
	return &corev1.Pod{
		ObjectMeta: owned(name, rs, "ReplicaSet", rs.Labels),
		Spec:       corev1.PodSpec{NodeName: node, Containers: rs.Spec.Template.Spec.Containers},
	}
}

func (p *program) pod(name string, change func(*corev1.Pod)) {
	managertest.Update(p.Env, "default", name, change)
}

// wantLines checks the log lines since the last call.
func (p *program) wantLines(want ...string) {
	p.Helper()
	if diff := cmp.Diff(want, p.log.lines()); diff != "" {
		p.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

// wantPlacements checks which Pods have a recorded placement.
func (p *program) wantPlacements(want ...string) {
	p.Helper()
	icecream, _ := managertest.Get[*icecreamv1alpha1.Icecream](p.Env, "default", "example")
	var got []string
	for _, placement := range icecream.Status.Placements {
		got = append(got, placement.Pod)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		p.Errorf("placements of %q, want %q", got, want)
	}
}

// line returns the log line of a Pod.
func line(pod, node string) string {
	return `"Pod scheduled" icecream="default/example" pod="default/` + pod + `" node="` + node + `"`
}

func loggerTo(b *syncedBuffer) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(b)))
}

// syncedBuffer is a log that a program writes while a test reads it.
type syncedBuffer struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.Write(p)
}

// lines returns the lines since the last call, without their prefix.
func (b *syncedBuffer) lines() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var lines []string
	for line := range strings.Lines(b.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "] ")
		lines = append(lines, rest)
	}
	b.Reset()
	return lines
}

// at returns the time this many seconds after the start.
func at(second int) time.Time { return time.Unix(1_767_225_600+int64(second), 0) }

// newPod returns a cached Pod that was placed on a node at the given second.
func newPod(name, node string, second int, changes ...func(*corev1.Pod)) *pods.Record {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(second))},
		}},
	}
	for _, change := range changes {
		change(pod)
	}
	return controller.NewRecord[pods.Facts](pod)
}

func withUID(uid types.UID) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.UID = uid } }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at(0)} }

// placement returns the record of a Pod of newPod.
func placement(name, node string, second int) icecreamv1alpha1.Placement {
	return icecreamv1alpha1.Placement{PodUID: types.UID("uid-" + name), Pod: name, Node: node,
		Time: metav1.NewTime(at(second))}
}

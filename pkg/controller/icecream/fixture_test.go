// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2/textlogger"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplefake "samplecontroller.io/client-go/clientset/versioned/fake"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// fixture has a kind with caches that the test fills. Its Icecream, default/example, is
// always read from the API server.
type fixture struct {
	*testing.T
	kind   *kind
	sample *samplefake.Clientset
	// The caches, which the test fills. That of Icecreams has the last synced version.
	icecreams         cache.TypedIndexer[*icecreamv1alpha1.Icecream]
	pods, replicaSets cache.Indexer
	deployments       cache.Indexer
	events            *record.FakeRecorder
	log               *bytes.Buffer
	workload          workload.Status // the desired status of the Deployment
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	icecream := &icecreamv1alpha1.Icecream{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "uid-example", ResourceVersion: "1"},
		Spec:       icecreamv1alpha1.IcecreamSpec{DeploymentName: "web"},
	}
	deployment := deploymentOf("uid-web", "uid-example")

	informers := ownership.Informers{ // they do not run
		Pods:        cache.NewTypedSharedIndexInformer[*podrecord.Record](cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, podrecord.Indexers())),
		ReplicaSets: cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})),
		Deployments: cache.NewTypedSharedIndexInformer[*appsv1.Deployment](cache.NewSharedIndexInformer(&cache.ListWatch{}, &appsv1.Deployment{}, 0, cache.Indexers{})),
	}
	chain, err := ownership.NewChain(informers)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		T:           t,
		sample:      samplefake.NewClientset(icecream),
		icecreams:   cache.NewTypedSharedIndexInformer[*icecreamv1alpha1.Icecream](cache.NewSharedIndexInformer(&cache.ListWatch{}, &icecreamv1alpha1.Icecream{}, 0, cache.Indexers{})).GetTypedIndexer(),
		pods:        informers.Pods.GetIndexer(),
		replicaSets: informers.ReplicaSets.GetIndexer(),
		deployments: informers.Deployments.GetIndexer(),
		workload:    workload.Status{ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, Selector: "app=icecream", Conditions: []metav1.Condition{condition("Ready")}},
	}
	f.kind = &kind{client: f.sample.IcecreamV1alpha1(), chain: chain}
	f.put(f.deployments, deployment)
	f.put(f.replicaSets, replicaSetOf(deployment))
	f.restart()
	return f
}

func (f *fixture) put(store cache.Store, obj any) {
	f.Helper()
	if err := store.Add(obj); err != nil {
		f.Fatal(err)
	}
}

// restart continues with another process, which only has the API server's state.
func (f *fixture) restart() {
	f.log, f.events = &bytes.Buffer{}, record.NewFakeRecorder(100)
	f.kind.log = newPlacementLog(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(f.log))), f.events, f.icecreams)
}

// sync writes the status, and reports whether anything was written.
func (f *fixture) sync() (written bool) {
	f.Helper()
	applied, err := f.apply()
	if err != nil {
		f.Fatal(err)
	}
	return applied != nil
}

func (f *fixture) apply() (*icecreamv1alpha1.Icecream, error) {
	icecream := f.icecream()
	f.put(f.icecreams, icecream)
	write, err := f.kind.StatusWrite(icecream, f.kind.Status(icecream), f.workload)
	if write == nil || err != nil {
		return nil, err
	}
	return write(f.Context())
}

func (f *fixture) icecream() *icecreamv1alpha1.Icecream {
	f.Helper()
	icecream, err := f.sample.IcecreamV1alpha1().Icecreams("default").Get(f.Context(), "example", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return icecream
}

// refuse makes the API server refuse status writes while the condition holds.
func (f *fixture) refuse(while *bool, err error) {
	f.sample.PrependReactor("patch", "icecreams", func(clienttesting.Action) (bool, runtime.Object, error) { return *while, nil, err })
}

func (f *fixture) add(pods ...*podrecord.Record) {
	f.Helper()
	for _, pod := range pods {
		f.put(f.pods, pod)
	}
}

func (f *fixture) remove(pods ...*podrecord.Record) {
	f.Helper()
	for _, pod := range pods {
		if err := f.pods.Delete(pod); err != nil {
			f.Fatal(err)
		}
	}
}

// lines returns the log lines since the last call, without their prefix.
func (f *fixture) lines() []string {
	var lines []string
	for line := range strings.Lines(f.log.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "] ")
		lines = append(lines, rest)
	}
	f.log.Reset()
	return lines
}

func (f *fixture) wantLines(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.lines()); diff != "" {
		f.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

func (f *fixture) wantEvents(want ...string) {
	f.Helper()
	var got []string
	for len(f.events.Events) > 0 {
		got = append(got, <-f.events.Events)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("unexpected Events (-want +got):\n%s", diff)
	}
}

func (f *fixture) wantPlacements(want ...icecreamv1alpha1.Placement) {
	f.Helper()
	if diff := cmp.Diff(want, f.icecream().Status.Placements); diff != "" {
		f.Errorf("unexpected placements (-want +got):\n%s", diff)
	}
}

// line returns the log line of a Pod.
func line(pod, node string) string {
	return `"Pod scheduled" icecream="default/example" pod="default/` + pod + `" node="` + node + `"`
}

func condition(conditionType string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.NewTime(at(0))}
}

// metadata returns the metadata of an object with UID "uid-<name>" and a controller of
// apps/v1.
func metadata(name string, owner metav1.Object, kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-" + name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))},
	}
}

// at returns the time this many seconds after the start.
func at(second int) time.Time { return time.Unix(1_767_225_600+int64(second), 0) }

// newPod returns a Pod of the Icecream that was placed on a node at the given second.
func newPod(name, node string, second int, changes ...func(*corev1.Pod)) *podrecord.Record {
	pod := &corev1.Pod{
		ObjectMeta: metadata(name, &metav1.ObjectMeta{Name: "web-1", UID: "uid-web-1"}, "ReplicaSet"),
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(second))}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return podrecord.New(pod)
}

func withUID(uid types.UID) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.UID = uid } }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at(0)} }

// placement returns the record of a Pod of newPod.
func placement(name, node string, second int) icecreamv1alpha1.Placement {
	return icecreamv1alpha1.Placement{PodUID: types.UID("uid-" + name), Pod: name, Node: node, Time: metav1.NewTime(at(second))}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplefake "samplecontroller.io/client-go/clientset/versioned/fake"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// The informers are not in step: the cache may have a Pod before its owners.
func TestPlacedPodEnqueuesItsIcecream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		example := &icecreamv1alpha1.Icecream{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "uid-example", ResourceVersion: "1"},
			Spec:       icecreamv1alpha1.IcecreamSpec{DeploymentName: "web"},
		}
		deployment := &appsv1.Deployment{ObjectMeta: metadata("web", example, "")}
		deployment.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(example, kinds.Icecream)}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "icecream", "controller": "example"}}
		deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
		replicaSet := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
			ObjectMeta: metadata("web-1", deployment, "Deployment"),
		}
		replicaSet.Labels = deployment.Spec.Selector.MatchLabels

		kube, sample := kubefake.NewClientset(deployment), samplefake.NewClientset(example)
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		metadataClient := metadatafake.NewSimpleMetadataClient(scheme)
		kubeFactory := kubeinformers.NewSharedInformerFactoryWithOptions(kube, 0, kubeinformers.WithTransform(podrecord.Transform))
		sampleFactory, metadataFactory := sampleinformers.NewSharedInformerFactory(sample, 0), metadatainformer.NewSharedInformerFactory(metadataClient, 0)
		chain := ownership.Informers{
			Pods: cache.NewTypedSharedIndexInformer[*podrecord.Record](kubeFactory.InformerFor(&podrecord.Record{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				return coreinformers.NewPodInformer(client, metav1.NamespaceAll, resync, podrecord.Indexers())
			})),
			ReplicaSets: cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](metadataFactory.ForResource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Informer()),
			Deployments: kubeFactory.Apps().V1().Deployments().TypedInformer(),
		}

		var log syncedBuffer
		ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))))
		syncs := make(chan reconcile.Result, 1000)
		events, placed := record.NewFakeRecorder(100), record.NewFakeRecorder(100)
		controller, err := NewController(ctx, sample.IcecreamV1alpha1(), workload.Options[*icecreamv1alpha1.Icecream]{
			Objects:     sampleFactory.Icecream().V1alpha1().Icecreams().TypedInformer(),
			Deployments: chain.Deployments,
			Client:      kube.AppsV1(),
			Consistency: &reconcile.ConsistencyStore{},
			Recorder:    events,
			Loop:        []reconcile.Option{reconcile.WithObserver(func(_ context.Context, o reconcile.Outcome) { syncs <- o.Result })},
		}, chain, placed)
		if err != nil {
			t.Fatal(err)
		}
		kubeFactory.StartWithContext(ctx)
		sampleFactory.StartWithContext(ctx)
		metadataFactory.Start(ctx.Done())
		done := make(chan error)
		go func() { done <- controller.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run() = %v", err)
			}
			kubeFactory.Shutdown()
			sampleFactory.Shutdown()
			metadataFactory.Shutdown()
		}()
		synctest.Wait()

		pods := kube.Tracker()
		podsResource := corev1.SchemeGroupVersion.WithResource("pods")
		pod := func(version, node string) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a", ResourceVersion: version, Labels: replicaSet.Labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
				Spec: corev1.PodSpec{NodeName: node},
			}
		}
		if err := pods.Add(pod("1", "node-1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := log.scheduled(); len(got) > 0 {
			t.Errorf("logged %q for a Pod without an owner chain", got)
		}
		if err := metadataClient.Tracker().Create(appsv1.SchemeGroupVersion.WithResource("replicasets"), replicaSet, "default"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := log.scheduled(); !slices.Equal(got, []string{line("a", "node-1")}) {
			t.Errorf("logged %q, want the line of a", got)
		}

		// A change of a Pod that is not a move enqueues nothing.
		for len(syncs) > 0 {
			<-syncs
		}
		changed := pod("2", "node-1")
		changed.Status.Phase = corev1.PodRunning
		if err := pods.Update(podsResource, changed, "default"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(syncs) > 0 {
			t.Errorf("%d syncs for a Pod that has not moved, want none", len(syncs))
		}

		// A Pod that is created before it is placed.
		second := pod("3", "")
		second.Name, second.UID = "b", "uid-b"
		if err := pods.Add(second.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		second.ResourceVersion, second.Spec.NodeName = "4", "node-2"
		if err := pods.Update(podsResource, second, "default"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := log.scheduled(); !slices.Equal(got, []string{line("b", "node-2")}) {
			t.Errorf("logged %q, want the line of b", got)
		}

		// A Pod that fails as soon as it is placed, and one that has failed when it is first
		// seen, perhaps long ago.
		third := pod("5", "")
		third.Name, third.UID = "c", "uid-c"
		fourth := pod("7", "node-4")
		fourth.Name, fourth.UID, fourth.Status.Phase = "d", "uid-d", corev1.PodFailed
		for _, created := range []*corev1.Pod{third.DeepCopy(), fourth} {
			if err := pods.Add(created); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		third.ResourceVersion, third.Spec.NodeName, third.Status.Phase = "6", "node-3", corev1.PodFailed
		if err := pods.Update(podsResource, third, "default"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := log.scheduled(); !slices.Equal(got, []string{line("c", "node-3")}) {
			t.Errorf("logged %q, want the line of c", got)
		}

		time.Sleep(2 * time.Second) // the status only reports progress, so it is delayed
		synctest.Wait()

		// Placements have a recorder of their own, so that they cannot displace other Events.
		if len(placed.Events) != 3 || len(events.Events) > 0 {
			t.Errorf("%d Events about placements and %d others, want 3 and none", len(placed.Events), len(events.Events))
		}

		// A Pod that is deleted after its owner chain was cut.
		if err := metadataClient.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("replicasets"), "default", replicaSet.Name); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, want := range []int{2, 1} {
			icecream, err := sample.IcecreamV1alpha1().Icecreams("default").Get(t.Context(), "example", metav1.GetOptions{})
			if err != nil || len(icecream.Status.Placements) != want {
				t.Errorf("placements = %v, %v, want %d", icecream.Status.Placements, err, want)
			}
			if want > 1 {
				if err := pods.Delete(podsResource, "default", "b"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
			}
		}
	})
}

// syncedBuffer is a buffer that a controller writes to while a test reads it.
type syncedBuffer struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.Write(p)
}

// scheduled returns the lines of placements since the last call.
func (b *syncedBuffer) scheduled() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var lines []string
	for line := range strings.Lines(b.String()) {
		if _, rest, _ := strings.Cut(strings.TrimSpace(line), "] "); strings.HasPrefix(rest, `"Pod scheduled"`) {
			lines = append(lines, rest)
		}
	}
	b.Reset()
	return lines
}

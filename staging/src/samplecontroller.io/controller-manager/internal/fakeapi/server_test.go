// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// cluster is a server with a client.
type cluster struct {
	*testing.T
	*Server
	kube kubernetes.Interface
}

func newCluster(t *testing.T) *cluster {
	api := New(kubescheme.Scheme)
	config := &rest.Config{Host: "http://api.test", Transport: api, QPS: -1}
	config.ContentType = "application/json"
	return &cluster{t, api, kubernetes.NewForConfigOrDie(config)}
}

func (c *cluster) configMaps() corev1client.ConfigMapInterface {
	return c.kube.CoreV1().ConfigMaps("default")
}

// configMap creates a ConfigMap with owners.
func (c *cluster) configMap(name string, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
	c.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, owner := range owners {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
		})
	}
	created, err := c.configMaps().Create(c.Context(), o, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return created
}

// delete deletes a ConfigMap.
func (c *cluster) delete(name string, policy metav1.DeletionPropagation) error {
	return c.configMaps().Delete(c.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
}

// expect compares the names of the ConfigMaps after garbage has been collected.
func (c *cluster) expect(want ...string) {
	c.Helper()
	c.CollectGarbage()
	list, err := c.configMaps().List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	got := sets.New[string]()
	for i := range list.Items {
		got.Insert(list.Items[i].Name)
	}
	if !got.Equal(sets.New(want...)) {
		c.Errorf("ConfigMaps %q, want %q", sets.List(got), want)
	}
}

func TestDependentsAreCollected(t *testing.T) {
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			c := newCluster(t)
			a, b := c.configMap("a"), c.configMap("b")
			c.configMap("of-ab", a, b)
			c.configMap("of-of-a", c.configMap("of-a", a))
			c.expect("a", "b", "of-ab", "of-a", "of-of-a")
			if err := c.delete("a", policy); err != nil {
				t.Fatal(err)
			}
			c.expect("b", "of-ab")
			o, err := c.configMaps().Get(t.Context(), "of-ab", metav1.GetOptions{})
			if err != nil || len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Name != "b" {
				t.Errorf("%v, %v, want only the owner that exists", o, err)
			}
		})
	}
	c := newCluster(t)
	c.configMap("a")
	if err := c.delete("a", metav1.DeletePropagationOrphan); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a deletion that is not supported: %v, want an error", err)
	}
}

// TestForegroundWaitsForDependent has a dependent that stays, and blocks its owner or not.
func TestForegroundWaitsForDependent(t *testing.T) {
	t.Run("blocking", func(t *testing.T) { testForeground(t, true, "a", "of-a") })
	t.Run("not blocking", func(t *testing.T) { testForeground(t, false, "of-a") })
}

func testForeground(t *testing.T, block bool, left ...string) {
	t.Helper()
	c := newCluster(t)
	dependent := c.configMap("of-a", c.configMap("a"))
	dependent.Finalizers, dependent.OwnerReferences[0].BlockOwnerDeletion = []string{"example.com/test"}, &block
	if _, err := c.configMaps().Update(t.Context(), dependent, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.delete("a", metav1.DeletePropagationForeground); err != nil {
		t.Fatal(err)
	}
	c.expect(left...)
	_, err := c.configMaps().Patch(t.Context(), "of-a", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.expect()
}

func TestNamespaceEndsWithItsContent(t *testing.T) {
	c := newCluster(t)
	c.configMap("a")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	claims := c.kube.CoreV1().PersistentVolumeClaims("default")
	if _, err := claims.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.kube.CoreV1().Namespaces().Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.expect()
	_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the Namespace: %v, want that it is not found", err)
	}
}

// TestCompactionExpires reads from versions that the server has forgotten.
func TestCompactionExpires(t *testing.T) {
	c := newCluster(t)
	c.configMap("a")
	c.configMap("b")
	configMaps := c.configMaps()
	first, err := configMaps.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(first.Items) != 1 {
		t.Fatalf("%v, %v, want one page", first, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	c.configMap("c")
	c.Compact()
	if event := <-open.ResultChan(); event.Object.(*corev1.ConfigMap).Name != "c" {
		t.Errorf("an open watch has the event %v, want the next change", event)
	}
	_, err = configMaps.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("the next page: %v, want that it has expired", err)
	}
	late, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	if event := <-late.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("a watch from an old version has the event %v, want that it has expired", event)
	}
}

func TestDeletedCRDIsNotServed(t *testing.T) {
	c := newCluster(t)
	installCRDs(t, "http://api.test", c)
	talk := newConversation(t, "http://api.test", c)
	for _, exchange := range []struct{ request, code string }{
		{"GET /apis/fakeapi.example.com/v1/gizmos", "200"},
		{"DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/gizmos.fakeapi.example.com", "200"},
		{"GET /apis/fakeapi.example.com/v1/gizmos", "404"},
		{"GET /apis/fakeapi.example.com/v1/gadgets", "200"},
	} {
		if answer := talk.send(exchange.request); answer[:3] != exchange.code {
			t.Errorf("%s: %s, want code %s", exchange.request, answer, exchange.code)
		}
	}
}

// TestBookmarks has watches that last one and a half minutes.
func TestBookmarks(t *testing.T) {
	for allowed, want := range map[bool][]time.Duration{false: nil, true: {time.Minute, 88 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			c, began := newCluster(t), time.Now()
			w, err := c.configMaps().Watch(t.Context(), metav1.ListOptions{
				AllowWatchBookmarks: allowed, TimeoutSeconds: ptr.To[int64](90),
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Duration
			for event := range w.ResultChan() {
				if event.Type == watch.Bookmark {
					got = append(got, time.Since(began))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("allowed %t: bookmarks after %v, want %v", allowed, got, want)
			}
		})
	}
}

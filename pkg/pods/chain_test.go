// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/managertest"
)

// podsBelow returns the names of the Pods of an object's Deployments.
func (c *cluster) podsBelow(chain *Chain, owner metav1.OwnerReference) (names []string) {
	for _, d := range DeploymentsOf(c.deployments, c.namespace, owner.UID) {
		for _, pod := range chain.PodsOf(d) {
			names = append(names, pod.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// podsOf returns the names of all cached Pods of the namespace whose events enqueue the object.
func (c *cluster) podsOf(chain *Chain, owner metav1.OwnerReference) (names []string) {
	for _, pod := range chain.pods.List(c.namespace) {
		if slices.Contains(chain.ofPod(pod), cache.NewObjectName(c.namespace, owner.Name)) {
			names = append(names, pod.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// TestChain follows owner references in both directions, in two controllers, which share the caches and
// indexes.
func TestChain(t *testing.T) {
	// Each case has the Icecream example, the Deployment web, the ReplicaSet web-1 and the Pod web-1-a, and
	// adds to them.
	type base struct {
		*cluster
		example, web, web1 metav1.OwnerReference
	}
	cases := map[string]struct {
		more func(c base)
		want string // all Pods of the Icecream
	}{
		"one":                      {func(base) {}, "web-1-a"},
		"several":                  {func(c base) { c.pod("web-1-b", c.web1) }, "web-1-a web-1-b"},
		"no owner":                 {func(c base) { c.pod("same-labels") }, "web-1-a"},
		"owned directly":           {func(c base) { c.pod("bare", c.example) }, "web-1-a"},
		"owner not the controller": {func(c base) { c.pod("adopted", notController(c.web1)) }, "web-1-a"},
		"an earlier ReplicaSet":    {func(c base) { c.pod("late", withUID(c.web1, "uid-before")) }, "web-1-a"},
		"ReplicaSet not cached": {func(c base) {
			c.pod("orphan", withUID(metav1.OwnerReference{Kind: "ReplicaSet", Name: "web-9", Controller: c.web1.Controller}, "uid-9"))
		}, "web-1-a"},
		"ReplicaSet without owner":  {func(c base) { c.pod("loose-a", c.replicaSet("loose")) }, "web-1-a"},
		"an earlier Deployment":     {func(c base) { c.pod("before-a", c.replicaSet("before", withUID(c.web, "uid-before"))) }, "web-1-a"},
		"ReplicaSet not controlled": {func(c base) { c.pod("lent-a", c.replicaSet("lent", notController(c.web))) }, "web-1-a"},
		"an older rollout":          {func(c base) { c.pod("web-0-a", c.replicaSet("web-0", c.web)) }, "web-0-a web-1-a"},
		"a former Deployment":       {func(c base) { c.pod("former-1-a", c.replicaSet("former-1", c.deployment("former", c.example))) }, "former-1-a web-1-a"},
		"Deployment without owner":  {func(c base) { c.pod("free-1-a", c.replicaSet("free-1", c.deployment("free"))) }, "web-1-a"},
		// Owner references are only valid within a namespace: these are forged.
		"Pod elsewhere":        {func(c base) { c.in("elsewhere").pod("web-1-b", c.web1) }, "web-1-a"},
		"ReplicaSet elsewhere": {func(c base) { c.pod("far-a", c.in("elsewhere").replicaSet("far", c.web)) }, "web-1-a"},
		"Deployment elsewhere": {func(c base) { c.pod("far-1-a", c.replicaSet("far-1", c.in("elsewhere").deployment("far", c.example))) }, "web-1-a"},
	}
	inCluster(t, func(c *cluster) {
		examples := map[string]base{}
		for name, test := range cases {
			b := base{cluster: c.in(strings.ReplaceAll(strings.ToLower(name), " ", "-"))}
			b.example = b.icecream("example")
			b.web = b.deployment("web", b.example)
			b.web1 = b.replicaSet("web-1", b.web)
			b.pod("web-1-a", b.web1)
			test.more(b)
			examples[name] = b
		}
		c.Settle()
		for name, test := range cases {
			b, want := examples[name], strings.Fields(test.want)
			for controller, chain := range c.chains {
				if diff := cmp.Diff(want, b.podsBelow(chain, b.example)); diff != "" {
					t.Errorf("%s: %s: Pods below the Icecream (-want +got):\n%s", controller, name, diff)
				}
				if diff := cmp.Diff(want, b.podsOf(chain, b.example)); diff != "" {
					t.Errorf("%s: %s: Pods that enqueue the Icecream (-want +got):\n%s", controller, name, diff)
				}
			}
		}
	})
}

func TestPodByName(t *testing.T) {
	inCluster(t, func(c *cluster) {
		web := c.deployment("web")
		a, orphan := c.pod("a", c.replicaSet("web-1", web)), c.pod("orphan")
		c.Settle()
		chain := c.chains["a-controller"]
		for name, test := range map[string]struct {
			namespace  string
			pod        metav1.OwnerReference
			has        bool
			deployment bool
		}{
			"of a Deployment":                 {"default", a, true, true},
			"without an owner":                {"default", orphan, true, false},
			"an earlier Pod of the same name": {"default", withUID(a, "uid-before"), false, true},
			"another":                         {"default", metav1.OwnerReference{Name: "other", UID: a.UID}, false, false},
			"in another namespace":            {"other", a, false, false},
		} {
			if got := chain.HasPod(test.namespace, test.pod.Name, test.pod.UID); got != test.has {
				t.Errorf("%s: HasPod() = %v, want %v", name, got, test.has)
			}
			if d := chain.DeploymentOfPod(test.namespace, test.pod.Name); (d != nil && d.UID == web.UID) != test.deployment {
				t.Errorf("%s: DeploymentOfPod() = %v, want one: %v", name, d, test.deployment)
			}
		}
		if found := chain.PodsOf(nil); found != nil {
			t.Errorf("PodsOf(nil) = %v, want none", found)
		}
	})
}

func TestEventsEnqueueOwner(t *testing.T) {
	inCluster(t, func(c *cluster) {
		web := c.deployment("web", c.icecream("example"))
		c.Settle()
		expect := func(what string, want bool) {
			t.Helper()
			c.Settle()
			if n := c.enqueued.Swap(0); (n > 0) != want {
				t.Errorf("%s: %d calls, want some: %v", what, n, want)
			}
		}
		expect("a new Icecream", true)
		web1 := c.replicaSet("web-1", web)
		expect("a new ReplicaSet", true)
		c.pod("a", web1)
		expect("a new Pod", true)
		managertest.Update(c.Env, "default", "a", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "1"} })
		expect("an annotation", false)
		managertest.Update(c.Env, "default", "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		expect("a new phase", true)
		managertest.Update(c.Env, "default", "a", func(p *corev1.Pod) { p.Labels = nil })
		expect("a label that is no longer selected", true)
		c.pod("foreign")
		expect("a Pod without an owner", false)
		c.Delete(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}})
		expect("a deleted ReplicaSet", true)
	})
}

func TestWatched(t *testing.T) {
	d := &appsv1.Deployment{}
	if Watched(d) {
		t.Error("the Pods of a Deployment without a selector are watched")
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "adopted"}}
	if Watched(d) {
		t.Error("the Pods of a Deployment with another selector are watched")
	}
	d.Spec.Selector.MatchLabels[Selector] = "example"
	if !Watched(d) {
		t.Error("the Pods of a Deployment with the label are not watched")
	}
}

func TestOwnerKeys(t *testing.T) {
	apiVersion, kind := icecream.ToAPIVersionAndKind()
	isController := true
	of := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "example", Controller: &isController}
	anotherVersion, anotherGroup, anotherKind := of, of, of
	anotherVersion.APIVersion = "controller.nicoleh.io/v1"
	anotherGroup.APIVersion = "example.com/v1alpha1"
	anotherKind.Kind = "Foo"
	example := []cache.ObjectName{{Namespace: "default", Name: "example"}}
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   []cache.ObjectName
	}{
		"of the kind":               {[]metav1.OwnerReference{of}, example},
		"of the kind, among others": {[]metav1.OwnerReference{notController(anotherKind), of}, example},
		"none":                      {nil, nil},
		"not the controller":        {[]metav1.OwnerReference{notController(of)}, nil},
		"of another kind":           {[]metav1.OwnerReference{anotherKind}, nil},
		"of another group":          {[]metav1.OwnerReference{anotherGroup}, nil},
		"of another version":        {[]metav1.OwnerReference{anotherVersion}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", OwnerReferences: test.owners}}
			if diff := cmp.Diff(test.want, OwnerKeys(icecream, web)); diff != "" {
				t.Errorf("unexpected owner keys (-want +got):\n%s", diff)
			}
		})
	}
}

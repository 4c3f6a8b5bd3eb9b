// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

func TestPodsOf(t *testing.T) {
	// Each case adds to these.
	web := []any{
		deployment("web", byIcecream("example")),
		replicaSet("web-1", by("Deployment", "web")),
		pod("web-1-a", by("ReplicaSet", "web-1")),
	}
	for name, test := range map[string]struct {
		more []any
		want []string
	}{
		"one":                              {nil, []string{"web-1-a"}},
		"several":                          {[]any{pod("web-1-b", by("ReplicaSet", "web-1"))}, []string{"web-1-a", "web-1-b"}},
		"no owner":                         {[]any{pod("same-labels")}, []string{"web-1-a"}},
		"owned by the object directly":     {[]any{pod("bare", byIcecream("example"))}, []string{"web-1-a"}},
		"owner that is not the controller": {[]any{pod("adopted", notController(by("ReplicaSet", "web-1")))}, []string{"web-1-a"}},
		"an earlier ReplicaSet of the same name": {
			[]any{pod("late", withUID(by("ReplicaSet", "web-1"), "uid-before"))},
			[]string{"web-1-a"},
		},
		"ReplicaSet not cached": {[]any{pod("orphan", by("ReplicaSet", "web-9"))}, []string{"web-1-a"}},
		"ReplicaSet without an owner": {
			[]any{replicaSet("loose"), pod("loose-a", by("ReplicaSet", "loose"))},
			[]string{"web-1-a"},
		},
		"an earlier Deployment of the same name": {
			[]any{replicaSet("before", withUID(by("Deployment", "web"), "uid-before")), pod("before-a", by("ReplicaSet", "before"))},
			[]string{"web-1-a"},
		},
		"ReplicaSet not controlled by the Deployment": {
			[]any{replicaSet("lent", notController(by("Deployment", "web"))), pod("lent-a", by("ReplicaSet", "lent"))},
			[]string{"web-1-a"},
		},
		"an older rollout": {
			[]any{replicaSet("web-0", by("Deployment", "web")), pod("web-0-a", by("ReplicaSet", "web-0"))},
			[]string{"web-0-a", "web-1-a"},
		},
		"a former Deployment": {
			[]any{deployment("former", byIcecream("example")), replicaSet("former-1", by("Deployment", "former")), pod("former-1-a", by("ReplicaSet", "former-1"))},
			[]string{"former-1-a", "web-1-a"},
		},
		"an earlier object of the same name": {
			[]any{deployment("other", withUID(byIcecream("example"), "uid-before")), replicaSet("other-1", by("Deployment", "other")), pod("other-1-a", by("ReplicaSet", "other-1"))},
			[]string{"web-1-a"},
		},
		// Owner references are only valid within a namespace: these are forged.
		"in another namespace": {[]any{podElsewhere("web-1-b", by("ReplicaSet", "web-1"))}, []string{"web-1-a"}},
		"ReplicaSet in another namespace": {
			[]any{elsewhere(replicaSet("far", by("Deployment", "web"))), pod("far-a", by("ReplicaSet", "far"))},
			[]string{"web-1-a"},
		},
		"Deployment in another namespace": {
			[]any{elsewhere(deployment("far", byIcecream("example"))), replicaSet("far-1", by("Deployment", "far")), pod("far-1-a", by("ReplicaSet", "far-1"))},
			[]string{"web-1-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaches(t, append(slices.Clip(web), test.more...)...)
			deployments, err := c.DeploymentsOf("default", "uid-example")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range deployments {
				pods, err := c.PodsOf(d)
				if err != nil {
					t.Fatal(err)
				}
				for _, pod := range pods {
					got = append(got, pod.GetName())
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected Pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHasPod(t *testing.T) {
	c := newCaches(t, pod("orphan")).Chain
	for name, test := range map[string]struct {
		namespace, pod, uid string
		want                bool
	}{
		"the Pod":                         {"default", "orphan", "uid-orphan", true},
		"an earlier Pod of the same name": {"default", "orphan", "uid-before", false},
		"another":                         {"default", "other", "uid-orphan", false},
		"in another namespace":            {"other", "orphan", "uid-orphan", false},
	} {
		if got := c.HasPod(test.namespace, test.pod, types.UID(test.uid)); got != test.want {
			t.Errorf("%s: HasPod() = %v, want %v", name, got, test.want)
		}
	}
}

func TestOwnerOfPod(t *testing.T) {
	web := []any{deployment("web", byIcecream("example")), replicaSet("web-1", by("Deployment", "web"))}
	example := []cache.ObjectName{{Namespace: "default", Name: "example"}}
	of := by("ReplicaSet", "web-1")
	for name, test := range map[string]struct {
		cached []any
		pod    *podrecord.Record
		want   []cache.ObjectName
	}{
		"an Icecream's":               {web, pod("a", of), example},
		"no owner":                    {web, pod("a"), nil},
		"owner is not the controller": {web, pod("a", notController(of)), nil},
		"an earlier ReplicaSet":       {web, pod("a", withUID(of, "uid-before")), nil},
		"in another namespace":        {web, podElsewhere("a", of), nil},
		"ReplicaSet not cached":       {web[:1], pod("a", of), nil},
		"ReplicaSet without an owner": {[]any{web[0], replicaSet("web-1")}, pod("a", of), nil},
		"Deployment not cached":       {web[1:], pod("a", of), nil},
		"an earlier Deployment":       {[]any{web[0], replicaSet("web-1", withUID(by("Deployment", "web"), "uid-before"))}, pod("a", of), nil},
		"Deployment without an owner": {[]any{deployment("web"), web[1]}, pod("a", of), nil},
		"owner of another kind":       {[]any{deployment("web", by("Icecream", "example")), web[1]}, pod("a", of), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaches(t, test.cached...)
			if diff := cmp.Diff(test.want, c.OfPod(icecream)(test.pod)); diff != "" {
				t.Errorf("unexpected objects of the Pod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnerOfReplicaSet(t *testing.T) {
	web := deployment("web", byIcecream("example"))
	of := by("Deployment", "web")
	for name, test := range map[string]struct {
		replicaSet *metav1.PartialObjectMetadata
		want       []cache.ObjectName
	}{
		"an Icecream's":         {replicaSet("web-1", of), []cache.ObjectName{{Namespace: "default", Name: "example"}}},
		"no owner":              {replicaSet("web-1"), nil},
		"an earlier Deployment": {replicaSet("web-1", withUID(of, "uid-before")), nil},
		"Deployment not cached": {replicaSet("web-1", by("Deployment", "web-9")), nil},
		"in another namespace":  {elsewhere(replicaSet("web-1", of)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, newCaches(t, web).OfReplicaSet(icecream)(test.replicaSet)); diff != "" {
				t.Errorf("unexpected objects of the ReplicaSet (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnerKeys(t *testing.T) {
	of := byIcecream("example")
	anotherVersion, anotherGroup, anotherKind := of, of, of
	anotherVersion.APIVersion = "controller.nicoleh.io/v1"
	anotherGroup.APIVersion = "example.com/v1alpha1"
	anotherKind.Kind = "Foo"
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   []cache.ObjectName
	}{
		"of the kind":               {[]metav1.OwnerReference{of}, []cache.ObjectName{{Namespace: "default", Name: "example"}}},
		"of the kind, among others": {[]metav1.OwnerReference{notController(byIcecream("other")), of}, []cache.ObjectName{{Namespace: "default", Name: "example"}}},
		"none":                      {nil, nil},
		"not the controller":        {[]metav1.OwnerReference{notController(of)}, nil},
		"of another kind":           {[]metav1.OwnerReference{anotherKind}, nil},
		"of another group":          {[]metav1.OwnerReference{anotherGroup}, nil},
		"of another version":        {[]metav1.OwnerReference{anotherVersion}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, OwnerKeys(icecream, deployment("web", test.owners...))); diff != "" {
				t.Errorf("unexpected owner keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeveralControllersShareTheIndexes(t *testing.T) {
	c := newCaches(t)
	second, err := NewChain(c.Informers)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []any{deployment("web", byIcecream("example")), replicaSet("web-1", by("Deployment", "web")), pod("a", by("ReplicaSet", "web-1"))} {
		c.add(object)
	}
	for name, chain := range map[string]*Chain{"first": c.Chain, "second": second} {
		deployments, err := chain.DeploymentsOf("default", "uid-example")
		if err != nil || len(deployments) != 1 {
			t.Fatalf("%s: Deployments %v, %v, want one", name, deployments, err)
		}
		if pods, err := chain.PodsOf(deployments[0]); err != nil || len(pods) != 1 {
			t.Errorf("%s: Pods %v, %v, want one", name, pods, err)
		}
	}
}

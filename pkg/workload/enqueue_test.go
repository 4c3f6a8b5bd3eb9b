// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func TestDeploymentEnqueuesOwnerAndObjectsNamingIt(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		waiting, elsewhere := kind.example(), kind.example()
		waiting.SetName("waiting")
		elsewhere.SetNamespace("elsewhere")
		for _, o := range []object{waiting, elsewhere} {
			if err := f.objects.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		owned := func(apiVersion, kind string) *appsv1.Deployment {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: deploymentName,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: ptr.To(true)}}}}
		}
		inDefault := func(names ...string) map[cache.ObjectName]bool {
			keys := map[cache.ObjectName]bool{}
			for _, name := range names {
				keys[cache.NewObjectName(key.Namespace, name)] = true
			}
			return keys
		}
		apiVersion := kind.GroupVersion().String()
		for name, test := range map[string]struct {
			deployment *appsv1.Deployment
			want       map[cache.ObjectName]bool
		}{
			"owned by an object of the kind":      {owned(apiVersion, kind.Kind), inDefault("owner", key.Name, "waiting")},
			"owned by an object of another group": {owned("example.com/v1alpha1", kind.Kind), inDefault(key.Name, "waiting")},
			"owned by another kind":               {owned(apiVersion, "Bar"), inDefault(key.Name, "waiting")},
			"no owner, not named":                 {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "unrelated"}}, inDefault()},
			"no owner, in a third namespace":      {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "third", Name: deploymentName}}, inDefault()},
		} {
			t.Run(name, func(t *testing.T) {
				got := map[cache.ObjectName]bool{}
				for _, key := range f.controller.Concerned(test.deployment) {
					got[key] = true
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("unexpected keys (-want +got):\n%s", diff)
				}
			})
		}
	})
}

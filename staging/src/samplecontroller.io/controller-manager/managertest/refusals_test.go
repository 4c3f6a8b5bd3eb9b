// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestChangedMetadataInUpdateStatusIsRefused(t *testing.T) {
	for name, change := range map[string]func(*appsv1.StatefulSet){
		"label":      func(s *appsv1.StatefulSet) { s.Labels = map[string]string{"a": "b"} },
		"annotation": func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{"a": "b"} },
		"finalizer":  func(s *appsv1.StatefulSet) { s.Finalizers = []string{"example.com/a"} },
		"owner":      func(s *appsv1.StatefulSet) { s.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} },
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			p := syncing(func(c *controller.Context) (controller.Controller, error) {
				return controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus()).Reconcile(func(ctx context.Context,
					r *controller.Request[*appsv1.StatefulSet]) error {
					if set, ok := r.Object(); ok {
						set.Status.Replicas = 7
						change(set)
						last = r.UpdateStatus(ctx, set)
					}
					return nil
				})
			})
			Run(t, p, func(t *testing.T, e *Env) {
				e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
				e.Settle()
				expect(t, "writes", e.Writes())
				if last == nil || !strings.Contains(last.Error(), "updating the status of StatefulSet ns/a: its metadata has been changed") {
					t.Errorf("%v, want an error about the metadata", last)
				}
			})
		})
	}
}

// TestGetOfUndecodableObject owns a Widget whose spec is text.
func TestGetOfUndecodableObject(t *testing.T) {
	p := ensureProgram()
	got := map[string]bool{}
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c)
		owned := controller.Owns[*Widget](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			configMap, ok := r.Object()
			if !ok {
				return nil
			}
			if _, ok := owned.Get(r, "a"); ok {
				got[configMap.Data["when"]] = true
				return nil
			}
			_, err := owned.Ensure(ctx, r, "a", func(*Widget) {})
			return err
		})
	}
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(owner("ns", map[string]string{"when": "before"}))
		e.Settle()
		patchWidget(e, "ns", `{"spec":{"containers":"none"}}`)
		e.Settle()
		Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["when"] = "after" })
		e.Settle()
		if !got["before"] || got["after"] {
			t.Errorf("Get returned an object: %v, want one before it could not be decoded", got)
		}
	})
}

// TestForWithoutSyncIsRefused has an informer for nothing.
func TestForWithoutSyncIsRefused(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		controller.For[*appsv1.StatefulSet](c)
		return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context,
			*controller.Request[*corev1.ConfigMap]) error {
			return nil
		})
	})
	const want = "building test-controller: each kind given to For needs one call of Reconcile"
	expectFailure(t, failing(t, p, func(*testing.T, *Env) {}), want, want)
}

// TestWatchWithClientConfigIsRefused has an informer whose watches would be cut off.
func TestWatchWithClientConfigIsRefused(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		client, err := corev1client.NewForConfig(c.ClientConfig())
		if err != nil {
			return nil, err
		}
		loop := c.Loop(func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, nil })
		resource := corev1.SchemeGroupVersion.WithResource("secrets")
		secrets := informers.InformerFor[*corev1.Secret](c.Informers(), resource, client.Secrets(c.Namespace()))
		reconcile.WatchSelf(loop, secrets)
		return loop, nil
	})
	p.Controllers = append(p.Controllers, program(rules).Controllers...)
	errs := failing(t, p, func(t *testing.T, e *Env) { e.Settle() })
	if !slices.ContainsFunc(errs, func(err string) bool { return strings.Contains(err, "use Context.ReadConfig") }) {
		t.Errorf("the test fails for %q, want the name of the right config", errs)
	}
}

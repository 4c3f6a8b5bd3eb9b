// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// patching returns a program whose ConfigMaps own Widgets that others make. change changes what Get returns, if
// the Widget is named a, or List.
func patching(change func(m *corev1.ConfigMap, w *Widget) *Widget) manager.Program {
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		owned := controller.Owns[*Widget](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			all := owned.List(r)
			if w, ok := owned.Get(r, "a"); ok {
				all = []*Widget{w}
			}
			for _, w := range all {
				if _, err := owned.Patch(ctx, r, change(m, w)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return p
}

// setImage sets the image of the ConfigMap.
func setImage(m *corev1.ConfigMap, w *Widget) *Widget {
	w.Spec.Containers[0].Image = m.Data["image"]
	return w
}

// createOwned creates ConfigMap ns/a, and a Widget that it owns and that has a field unknown to its type.
func createOwned(e *Env, name, image string) {
	e.t.Helper()
	e.Create(owner("ns", map[string]string{"image": image}))
	m, _ := Get[*corev1.ConfigMap](e, "ns", "a")
	w := widget("ns", "v1")
	w.Name = name
	w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	e.Create(w)
}

// expectImage compares the image of a Widget.
func expectImage(t *testing.T, e *Env, name, want string) {
	t.Helper()
	if w, ok := Get[*Widget](e, "ns", name); !ok || w.Spec.Containers[0].Image != want {
		t.Errorf("Widget %s is %v, want image %s", name, w.Spec, want)
	}
}

// TestPatchOfOwnedObject patches what Get and List return, by the difference only.
func TestPatchOfOwnedObject(t *testing.T) {
	for name, from := range map[string]string{"Get": "a", "List": "b"} {
		t.Run(name, func(t *testing.T) {
			Run(t, patching(setImage), func(t *testing.T, e *Env) {
				createOwned(e, from, "v1")
				e.Settle()
				expect(t, "writes while nothing differs", e.Writes())
				patch := []byte(`{"spec":{"color":"red"}}`) // the type lacks it
				if _, err := e.client(widgets, "ns").Patch(t.Context(), from, types.MergePatchType, patch,
					metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
				e.Settle()
				Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v2" })
				e.Settle()
				expect(t, "writes", e.Writes(), "patch widgets.test.example.com ns/"+from)
				expectImage(t, e, from, "v2")
				o, err := e.client(widgets, "ns").Get(t.Context(), from, metav1.GetOptions{})
				if err != nil || o.Object["spec"].(map[string]any)["color"] != "red" {
					t.Errorf("%v, %v, want the unknown field kept", o, err)
				}
			})
		})
	}
}

// TestWrongPatchOfOwnedObjectIsRefused patches something else than a changed copy.
func TestWrongPatchOfOwnedObjectIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *corev1.ConfigMap, w *Widget) *Widget
		want   string
	}{
		"older than the cache": {func(m *corev1.ConfigMap, w *Widget) *Widget {
			w.ResourceVersion = "1"
			return setImage(m, w)
		}, "it has changed since it was read from the cache"},
		"another object": {func(m *corev1.ConfigMap, w *Widget) *Widget {
			w.UID = "another"
			return setImage(m, w)
		}, "it has changed since it was read from the cache"},
		"missing": {func(m *corev1.ConfigMap, w *Widget) *Widget {
			w.Name = "missing"
			return setImage(m, w)
		}, "it has changed since it was read from the cache"},
		"status": {func(_ *corev1.ConfigMap, w *Widget) *Widget {
			w.Status.Image = "v2"
			return w
		}, "has changed its status"},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, patching(test.change), func(t *testing.T, e *Env) {
				createOwned(e, "a", "v2")
				time.Sleep(5 * time.Second)
				e.wait()
				if failure := failureOf(e); !strings.Contains(failure, test.want) {
					t.Errorf("the object fails with %q, want %q", failure, test.want)
				}
				expect(t, "writes", e.Writes())
				expectImage(t, e, "a", "v1")
			})
		})
	}
}

// TestPatchOfObjectOfAnotherOwnerIsRefused patches a cached Widget that another owner has by now.
func TestPatchOfObjectOfAnotherOwnerIsRefused(t *testing.T) {
	p := patching(nil)
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		owned := controller.Owns[*Widget](configMaps)
		named := controller.Refers[*Widget](configMaps, func(*corev1.ConfigMap) []string { return []string{"a"} })
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			w, ok := named.Get("ns", "a")
			if !ok {
				return nil
			}
			w.Spec.Containers[0].Image = "v2"
			_, err := owned.Patch(ctx, r, w)
			return err
		})
	}
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		e.Create(owner("ns", map[string]string{"image": "v2"}))
		time.Sleep(5 * time.Second)
		e.wait()
		const want = "patching Widget ns/a: ConfigMap ns/a does not own it: patch only what Get or List returns"
		if failure := failureOf(e); failure != want {
			t.Errorf("the object fails with %q, want %q", failure, want)
		}
		expect(t, "writes", e.Writes())
	})
}

// TestConflictOfPatchIsRetried changes a Widget shortly before its patch arrives.
func TestConflictOfPatchIsRetried(t *testing.T) {
	Run(t, patching(setImage), func(t *testing.T, e *Env) {
		createOwned(e, "a", "v1")
		e.Settle()
		e.BeforeWrite(func(string, *http.Request) error {
			e.BeforeWrite(nil)
			patchWidget(e, "ns", `{"metadata":{"labels":{"by":"another"}}}`)
			return nil
		})
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v2" })
		e.Settle()
		expect(t, "writes", e.Writes(), "patch widgets.test.example.com ns/a: Conflict", "patch widgets.test.example.com ns/a")
		expectImage(t, e, "a", "v2")
		if w, _ := Get[*Widget](e, "ns", "a"); w.Labels["by"] != "another" {
			t.Errorf("labels %v, want those of the other client kept", w.Labels)
		}
	})
}

// TestDeniedPatchIsReported denies a patch.
func TestDeniedPatchIsReported(t *testing.T) {
	Run(t, patching(setImage), func(t *testing.T, e *Env) {
		createOwned(e, "a", "v1")
		e.Settle()
		rejecting(e, "patch widgets", webhookDenial(403, "no"))
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v2" })
		time.Sleep(5 * time.Minute)
		if n := count(e.Writes(), "patch widgets"); n > 16 {
			t.Errorf("%d tries in 5 minutes, want one each 30 s", n)
		}
		expect(t, "Events", e.Events(), `Warning WriteDenied patching Widget ns/a was denied: admission webhook "w.example.com" denied the request: no`)
	})
}

// TestNewLeaderConfirmsBeforePatch changes an owner and its Widget, as another leader would, while the cache of
// owners of the next leader is behind.
func TestNewLeaderConfirmsBeforePatch(t *testing.T) {
	runLaggingProgram(t, patching(setImage), "configmaps", func(t *testing.T, e *Env, hold func() func()) {
		createOwned(e, "a", "v1")
		e.Settle()
		e.LoseLead()
		release := hold()
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v2" })
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		e.Lead()
		time.Sleep(10 * time.Second)
		expect(t, "writes while the cache is behind", e.Writes())
		release()
		time.Sleep(time.Minute)
		expect(t, "writes", e.Writes())
		expectImage(t, e, "a", "v2")
	})
}

// TestDependentThatWasReadIsNotCreatedAgain deletes an owner and, as the garbage collector would, what it owns.
// The cache sees the end of the owner last, and this process has only read the dependent.
func TestDependentThatWasReadIsNotCreatedAgain(t *testing.T) {
	for name, read := range map[string]func(*controller.Owned[*Widget, *corev1.ConfigMap],
		*controller.Request[*corev1.ConfigMap]) bool{
		"Get": func(o *controller.Owned[*Widget, *corev1.ConfigMap], r *controller.Request[*corev1.ConfigMap]) bool {
			_, ok := o.Get(r, "a")
			return ok
		},
		"List": func(o *controller.Owned[*Widget, *corev1.ConfigMap], r *controller.Request[*corev1.ConfigMap]) bool {
			return len(o.List(r)) > 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := patching(nil)
			p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
				configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
				owned := controller.Owns[*Widget](configMaps)
				return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
					m, ok := r.Object()
					if !ok || read(owned, r) || m.Data["image"] == "" {
						return nil
					}
					_, err := owned.Ensure(ctx, r, m.Data["image"], func(*Widget) {})
					return err
				})
			}
			runLaggingProgram(t, p, "configmaps", func(t *testing.T, e *Env, hold func() func()) {
				createOwned(e, "a", "")
				e.Settle() // it has been read
				Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"image": "a"} })
				another := owner("ns", map[string]string{"image": "other"})
				another.Name = "another"
				e.Create(another)
				e.Settle()
				time.Sleep(5 * time.Minute) // the cache has reached the version of the confirmation
				expect(t, "writes", e.Writes(), "create widgets.test.example.com ns/other")
				release := hold()
				e.Delete(owner("ns", nil), widget("ns", ""))
				time.Sleep(10 * time.Second)
				release()
				time.Sleep(time.Minute)
				expect(t, "writes after the deletion", e.Writes())
			})
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// vault is an external system.
type vault struct {
	mutex sync.Mutex
	calls []string
	err   error
	slow  bool // the cleanup is not done yet
}

// call records a call of the controller, and returns its result.
func (v *vault) call(what string) (slow bool, err error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.calls = append(v.calls, what)
	return v.slow, v.err
}

// next returns the calls since the last one, and sets the results of the next ones.
func (v *vault) next(slow bool, err error) (calls []string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	calls, v.calls, v.slow, v.err = v.calls, nil, slow, err
	return calls
}

const vaultFinalizer = "test.example.com/vault"

// vaultProgram has a controller that registers each ConfigMap with the vault.
func vaultProgram(v *vault) manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c)
		configMaps.Finalize(vaultFinalizer, func(_ context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			slow, err := v.call("delete " + r.Key().Name)
			if slow {
				r.RequeueAfter(time.Minute)
			}
			return err
		})
		return configMaps.Reconcile(func(_ context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			if m, ok := r.Object(); ok {
				if len(m.Finalizers) == 0 {
					return errors.New("the object has no finalizer")
				}
				_, err := v.call("put " + r.Key().Name)
				return err
			}
			return nil
		})
	})
}

func TestFinalizer(t *testing.T) {
	const ns = "finalize"
	v := &vault{}
	runAnywhere(t, vaultProgram(v), func(t *testing.T, e *Env) {
		e.Create(configMapOf(ns, "a"))
		e.Settle()
		expect(t, "writes", e.Writes(), "patch configmaps "+ns+"/a")
		v.next(false, controller.UserError("VaultSealed", errors.New("open the vault")))
		e.Delete(configMapOf(ns, "a"))
		e.Settle()
		expect(t, "calls", v.next(false, nil), "delete a")
		if m, ok := Get[*corev1.ConfigMap](e, ns, "a"); !ok || m.DeletionTimestamp == nil {
			t.Errorf("the object is %v, %v, want it to wait for the cleanup", m, ok)
		}
		expect(t, "writes", e.Writes())
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"again": "true"} })
		e.Settle()
		expect(t, "calls", v.next(false, nil), "delete a")
		expect(t, "writes", e.Writes(), "patch configmaps "+ns+"/a")
		if _, ok := Get[*corev1.ConfigMap](e, ns, "a"); ok {
			t.Error("the object still exists")
		}
	}, "--namespace="+ns)
}

// TestFinalizerIsRemovedWithoutStatus cleans up while the status cannot be written.
func TestFinalizerIsRemovedWithoutStatus(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		sets.Finalize("test.example.com/data", func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, _ := r.Object()
			set.Status.Replicas = 7
			return r.UpdateStatus(ctx, set)
		})
		return sets.Reconcile(func(context.Context, *controller.Request[*appsv1.StatefulSet]) error { return nil })
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if strings.Contains(write, "/status") {
				return apierrors.NewNotFound(appsv1.Resource("statefulsets"), "a")
			}
			return nil
		})
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
		e.Create(set)
		e.Settle()
		e.Delete(set)
		e.Settle()
		if _, found := Get[*appsv1.StatefulSet](e, "ns", "a"); found {
			t.Error("the object is still there, held by its finalizer")
		}
	})
}

// TestFinalizerSurvivesNewLeader deletes an object while nobody leads, and while its cleanup fails or
// takes long.
func TestFinalizerSurvivesNewLeader(t *testing.T) {
	v := &vault{}
	Run(t, vaultProgram(v), func(t *testing.T, e *Env) {
		e.Create(configMapOf("ns", "a"))
		e.Settle()
		expect(t, "calls", v.next(false, errors.New("the vault is down")), "put a")
		e.LoseLead()
		e.Delete(configMapOf("ns", "a"))
		e.Lead()
		time.Sleep(time.Minute)
		if n := len(v.next(true, nil)); n < 5 || n > 30 {
			t.Errorf("%d calls in a minute, want some, with backoff", n)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(v.next(true, nil)); n < 4 || n > 6 {
			t.Errorf("%d calls in 5 minutes, want one each minute", n)
		}
		if _, ok := Get[*corev1.ConfigMap](e, "ns", "a"); !ok {
			t.Error("the object is gone before the cleanup was done")
		}
		v.next(false, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, ok := Get[*corev1.ConfigMap](e, "ns", "a"); ok {
			t.Error("the object still exists")
		}
	})
}

// TestOnDeletion has a controller that reconciles objects in deletion, too, but may not own others for
// them.
func TestOnDeletion(t *testing.T) {
	for name, on := range map[string]bool{"on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			ns := "deletion-" + name
			v := &vault{} // with the errors of the calls for the object in deletion
			p := syncing(func(c *controller.Context) (controller.Controller, error) {
				configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
				secrets := controller.Owns[*corev1.Secret](configMaps)
				if on {
					configMaps.OnDeletion()
				}
				return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
					if m, ok := r.Object(); ok && m.DeletionTimestamp != nil {
						_, err := secrets.Ensure(ctx, r, "a", func(*corev1.Secret) {})
						_, _ = v.call(fmt.Sprint(err))
					}
					return nil
				})
			})
			runAnywhere(t, p, func(t *testing.T, e *Env) {
				m := owner(ns, nil)
				m.Finalizers = []string{"test.example.com/other"}
				e.Create(m)
				e.Delete(m)
				e.Settle()
				seen := v.next(false, nil)
				if on {
					// The addition and the deletion may enqueue it twice.
					expect(t, "calls", slices.Compact(seen), "ConfigMap "+ns+"/a is being deleted and cannot own objects: do not "+
						"call Ensure for it")
				} else {
					expect(t, "calls", seen)
				}
				expect(t, "writes", e.Writes())
				Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Finalizers = nil })
			}, "--namespace="+ns)
		})
	}
}

func TestWrongFinalizerIsRefused(t *testing.T) {
	finalize := func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil }
	for want, opts := range map[string]struct {
		finalizers []string
		selector   string
	}{
		`the finalizer "vault" has no domain: use a name such as "example.com/test-controller"`: {[]string{"vault"}, ""},
		`Finalize is called for "a.example.com/b" and "a.example.com/c"`:                        {[]string{"a.example.com/b", "a.example.com/c"}, ""},
		`Finalize cannot be used with the selector "a=b"`:                                       {[]string{"a.example.com/b"}, "a=b"},
	} {
		errs := failing(t, syncing(func(c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector(opts.selector))
			for _, f := range opts.finalizers {
				configMaps.Finalize(f, finalize)
			}
			return configMaps.Reconcile(finalize)
		}), func(*testing.T, *Env) {})
		if all := strings.Join(errs, "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	}
}

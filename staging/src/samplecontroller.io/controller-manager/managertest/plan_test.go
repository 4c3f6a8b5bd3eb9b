// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/testkit"
	"samplecontroller.io/controller-manager/manager"
)

// plannedProgram has a controller that owns a ConfigMap and a Secret for each StatefulSet, writes its status, and
// deletes the Secret if the StatefulSet has the label. cleanUps counts the calls of the finalizer.
func plannedProgram(finalizer bool, cleanUps *int) manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		configMaps := controller.Owns[*corev1.ConfigMap](sets)
		secrets := controller.Owns[*corev1.Secret](sets, controller.MayDelete())
		if finalizer {
			sets.Finalize("example.com/planned", func(context.Context, *controller.Request[*appsv1.StatefulSet]) error {
				*cleanUps++
				return nil
			})
		}
		sets.Source(func(ctx context.Context, _ func(cache.ObjectName)) error {
			if c.DryRun() {
				return errors.New("a source was called in a dry run")
			}
			<-ctx.Done()
			return nil
		})
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			m, err := configMaps.Ensure(ctx, r, set.Name, func(m *corev1.ConfigMap) {
				m.Data = map[string]string{"size": set.Annotations["size"]}
			})
			if err != nil {
				return err
			}
			if set.Labels["secret"] == "no" {
				err = secrets.Delete(ctx, r, set.Name)
			} else {
				_, err = secrets.Ensure(ctx, r, set.Name, func(s *corev1.Secret) {
					s.Data = map[string][]byte{"key": []byte(m.Data["size"])}
				})
			}
			set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "Size", Status: "True", Reason: "Is" + m.Data["size"]}}
			return errors.Join(err, r.UpdateStatus(ctx, set))
		})
	})
}

func setOf(name string) *appsv1.StatefulSet {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{"size": "1"}}
	return &appsv1.StatefulSet{ObjectMeta: meta}
}

// planOf returns the plan of the program with flags, while its process is a standby.
func planOf(t *testing.T, e *Env, p manager.Program, args ...string) plan.Report {
	t.Helper()
	e.Writes()
	args = append(args, "--kube-api-content-type=application/json", "--secure-port=0")
	report, err := testkit.Plan(t.Context(), p, restclient.CopyConfig(e.config), args)
	if err != nil {
		t.Fatal(err)
	}
	return report.(plan.Report)
}

// changes returns the changes of a plan, with the changed fields.
func changes(r plan.Report) (all []string) {
	for _, c := range r.Changes {
		all = append(all, strings.TrimSpace(c.String()+" "+c.Finalizer+strings.Join(c.Fields, " ")))
	}
	slices.Sort(all)
	return all
}

func wantReport(t *testing.T, r plan.Report, followed int, want ...string) {
	t.Helper()
	expect(t, "changes", changes(r), want...)
	if r.FollowingStatuses != followed || r.Failed() || len(r.NotPlanned) > 0 {
		t.Errorf("got the report %+v, want %d statuses that follow, and no problems", r, followed)
	}
}

// TestPlan makes plans while nothing differs, after changes of each kind, and after these are undone.
func TestPlan(t *testing.T) {
	p := plannedProgram(false, nil)
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(setOf("a"), setOf("b"))
		e.Settle()
		e.LoseLead()
		wantReport(t, planOf(t, e, p), 0)
		expect(t, "writes", e.Writes())

		m, _ := Get[*corev1.ConfigMap](e, "ns", "a")
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["size"] = "2" })
		wantReport(t, planOf(t, e, p), 0, "patch configmaps ns/a data.size")
		if now, _ := Get[*corev1.ConfigMap](e, "ns", "a"); now.Data["size"] != "2" {
			t.Errorf("the plan has written %v", now.Data)
		}
		Update(e, "ns", "a", func(now *corev1.ConfigMap) { now.Data = m.Data })

		Update(e, "ns", "b", func(s *appsv1.StatefulSet) { s.Status.Conditions = nil })
		r := planOf(t, e, p)
		wantReport(t, r, 0, "patch statefulsets/status.apps ns/b status.conditions")
		for _, c := range r.Changes {
			if strings.Contains(c.Before, "spec:") || !strings.Contains(c.After, "reason: Is1") {
				t.Errorf("got the change %+v, want only the status", c)
			}
		}

		Update(e, "ns", "b", func(s *appsv1.StatefulSet) { s.Annotations["size"] = "3" })
		r = planOf(t, e, p)
		wantReport(t, r, 1, "patch configmaps ns/b data.size", "patch secrets ns/b data.key")
		for _, c := range r.Changes {
			if c.Resource == "secrets" && !strings.Contains(c.After, "key: '*** (after)'") {
				t.Errorf("the plan shows the value of a Secret: %s", c.After)
			}
		}

		e.Create(setOf("c"))
		Update(e, "ns", "b", func(s *appsv1.StatefulSet) { s.Annotations["size"], s.Labels = "1", map[string]string{"secret": "no"} })
		wantReport(t, planOf(t, e, p), 2, "create configmaps ns/c", "create secrets ns/c", "delete secrets ns/b")
		if _, ok := Get[*corev1.Secret](e, "ns", "b"); !ok {
			t.Error("the plan has deleted a Secret")
		}
	})
}

// TestPlanProblems has API servers that refuse dry runs.
func TestPlanProblems(t *testing.T) {
	p := plannedProgram(false, nil)
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Create(setOf("a"))
		refuse := func(err error) plan.Report {
			e.BeforeWrite(func(write string, _ *http.Request) error {
				if write == "create configmaps ns/a" {
					return err
				}
				return nil
			})
			return planOf(t, e, p)
		}
		r := refuse(apierrors.NewBadRequest(`admission webhook "w.example.com" does not support dry run`))
		if len(r.Unknown) != 1 || len(r.Errors)+len(r.Changes) > 0 || r.Unknown[0].Write != "create configmaps ns/a" {
			t.Errorf("got the report %+v, want one unknown write", r)
		}
		r = refuse(apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("exceeded quota")))
		if len(r.Errors) != 1 || len(r.Unknown)+len(r.Changes) > 0 || !strings.Contains(r.Errors[0].String(), "exceeded quota") {
			t.Errorf("got the report %+v, want one error", r)
		}
	})
}

// TestPlanOfThrottledWrite has an API server that limits the rate of requests. The client sends the write again.
func TestPlanOfThrottledWrite(t *testing.T) {
	p := deniedProgram(false)
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Create(setOf("a"))
		throttled := 0
		e.BeforeWrite(func(string, *http.Request) error {
			if throttled++; throttled > 1 {
				return nil
			}
			return apierrors.NewTooManyRequests("later", 1)
		})
		wantReport(t, planOf(t, e, p), 0, "create configmaps ns/a")
		if throttled != 2 {
			t.Errorf("%d writes, want 2", throttled)
		}
	})
}

// TestPlanOfSlowWrite has a webhook that takes longer than --write-timeout, which the daemon copes with.
func TestPlanOfSlowWrite(t *testing.T) {
	p := deniedProgram(false)
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Create(setOf("a"))
		e.BeforeWrite(func(_ string, r *http.Request) error {
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-r.Context().Done():
				return context.Cause(r.Context())
			}
		})
		wantReport(t, planOf(t, e, p), 0, "create configmaps ns/a")
	})
}

// TestPlanOfTwoWrites has a controller that writes the labels and the status of each object twice in a call.
func TestPlanOfTwoWrites(t *testing.T) {
	p := ensureProgram()
	p.Controllers = []controller.Descriptor{{Name: "test-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			widgets := controller.For[*Widget](c, controller.MayPatch(), controller.MayPatchStatus())
			return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
				w, _ := r.Object()
				metav1.SetMetaDataLabel(&w.ObjectMeta, "first", "1")
				err := r.Patch(ctx, w)
				metav1.SetMetaDataLabel(&w.ObjectMeta, "second", "2")
				err = errors.Join(err, r.Patch(ctx, w))
				w, _ = r.Object()
				w.Status.Image = "v1"
				err = errors.Join(err, r.UpdateStatus(ctx, w))
				w.Status.Ports = 1
				return errors.Join(err, r.UpdateStatus(ctx, w))
			})
		}}}
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Create(widget("ns", "v1"))
		wantReport(t, planOf(t, e, p), 1, "patch widgets.test.example.com ns/a metadata.labels")
		Update(e, "ns", "a", func(w *Widget) { w.Labels = map[string]string{"first": "1", "second": "2"} })
		r := planOf(t, e, p)
		wantReport(t, r, 0, "patch widgets/status.test.example.com ns/a status")
		for _, c := range r.Changes {
			if !strings.Contains(c.After, "image: v1\n  ports: 1\n") {
				t.Errorf("the status would be\n%s", c.After)
			}
		}
	})
}

// TestPlanWithoutStatusSubresource has a CRD whose kind has no status subresource.
func TestPlanWithoutStatusSubresource(t *testing.T) {
	p := oldProgram(1)
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.InstallCRDs("testdata/oldwidgets.yaml")
		remove := []byte(`[{"op": "remove", "path": "/spec/versions/0/subresources"}]`)
		_, err := e.user.Resource(crds).Patch(t.Context(), "widgets.old.example.com", types.JSONPatchType, remove, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.Create(widget("ns", "v1"), widget("other", "v1"))
		r := planOf(t, e, p)
		if len(r.Errors) != 1 || len(r.Unknown)+len(r.Changes) > 0 || !strings.HasPrefix(r.Errors[0].Write, "patch widgets/status.old.example.com ") {
			t.Errorf("got the report %+v, want one error about a status", r)
		}
	})
}

// TestPlanCountsPausedObjects pauses one of two objects, which two controllers reconcile, and then one controller.
func TestPlanCountsPausedObjects(t *testing.T) {
	p := plannedProgram(false, nil)
	p.Controllers = append(p.Controllers, controller.Descriptor{Name: "second-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			sets := controller.For[*appsv1.StatefulSet](c, controller.Secondary())
			return sets.Reconcile(func(context.Context, *controller.Request[*appsv1.StatefulSet]) error { return nil })
		}})
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		a := setOf("a")
		a.Annotations["test.samplecontroller.io/paused"] = "true"
		e.Create(a, setOf("b"))
		r := planOf(t, e, p)
		wantReport(t, r, 1, "create configmaps ns/b", "create secrets ns/b")
		if r.PausedObjects != 1 {
			t.Errorf("%d paused objects, want 1", r.PausedObjects)
		}
		r = planOf(t, e, p, "--paused-controllers=second-controller")
		wantReport(t, r, 1, "create configmaps ns/b", "create secrets ns/b")
		if r.PausedObjects != 2 {
			t.Errorf("%d paused objects while a controller is paused, want 2", r.PausedObjects)
		}
	})
}

// TestPlanOfRoleBinding has a controller that owns a RoleBinding.
func TestPlanOfRoleBinding(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c)
		bindings := controller.Owns[*rbacv1.RoleBinding](sets)
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			_, err := bindings.Ensure(ctx, r, r.Key().Name, func(b *rbacv1.RoleBinding) {
				b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}
			})
			return err
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Create(setOf("a"))
		wantReport(t, planOf(t, e, p), 0, "create rolebindings.rbac.authorization.k8s.io ns/a")
	})
}

// TestPlanFinalizer plans an object without the finalizer, and one in deletion that has it.
func TestPlanFinalizer(t *testing.T) {
	cleanUps := 0
	p := plannedProgram(true, &cleanUps)
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(setOf("a"))
		e.Settle()
		e.LoseLead()
		e.Delete(setOf("a"))
		e.Create(setOf("b"))
		wantReport(t, planOf(t, e, p), 1, "create configmaps ns/b", "create secrets ns/b", "finalize statefulsets.apps ns/a example.com/planned",
			"patch statefulsets.apps ns/b metadata.finalizers")
		if cleanUps > 0 {
			t.Error("the plan has called the function of the finalizer")
		}
		e.Lead()
		e.Settle()
	})
}

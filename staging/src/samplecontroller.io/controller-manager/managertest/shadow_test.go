// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/manager"
)

// wantDifferences checks which resources have differences in the gauge of a program, and how many.
func wantDifferences(t *testing.T, program string, want map[string]float64) {
	t.Helper()
	synctest.Wait()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]float64 // nil without the gauge
	for _, f := range families {
		if f.GetName() != strings.ReplaceAll(program, "-", "_")+"_shadow_differences" {
			continue
		}
		got = map[string]float64{}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "resource" && m.GetGauge().GetValue() != 0 {
					got[label.GetValue()] += m.GetGauge().GetValue()
				}
			}
		}
	}
	if got == nil || !maps.Equal(got, want) {
		t.Errorf("got the differences %v, want %v", got, want)
	}
}

// TestShadow has a shadow, while a user does and undoes the work of the leader.
func TestShadow(t *testing.T) {
	p := plannedProgram(false, nil)
	p.Name = "shadow-manager"
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(setOf("a"))
		e.Settle()
		wantDifferences(t, p.Name, nil)
		time.Sleep(plan.Lasting - time.Second)
		wantDifferences(t, p.Name, nil) // the leader may still do it
		time.Sleep(2 * time.Second)
		wantDifferences(t, p.Name, map[string]float64{"configmaps": 1, "secrets": 1})
		if _, ok := Get[*corev1.ConfigMap](e, "ns", "a"); ok {
			t.Error("the shadow has created a ConfigMap")
		}
		expect(t, "Events", e.Events())

		set, _ := Get[*appsv1.StatefulSet](e, "ns", "a")
		owner := []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		meta := metav1.ObjectMeta{Namespace: "ns", Name: "a", OwnerReferences: owner}
		e.Create(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"size": "1"}},
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte("1")}})
		e.Settle()
		wantDifferences(t, p.Name, nil)
		time.Sleep(2 * plan.Lasting) // the status is not written either
		wantDifferences(t, p.Name, map[string]float64{"statefulsets/status.apps": 1})
	}, "--shadow")
}

// noDryRun is the answer of the API server for a webhook with side effects.
var noDryRun = apierrors.NewBadRequest(`admission webhook "w.example.com" does not support dry run`)

// deniedProgram has a controller that owns a ConfigMap for each StatefulSet. If the ConfigMap is denied, the status
// says so. The sync then succeeds, as with package workload, unless it fails.
func deniedProgram(fails bool) manager.Program {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		configMaps := controller.Owns[*corev1.ConfigMap](sets)
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := configMaps.Ensure(ctx, r, set.Name, func(*corev1.ConfigMap) {})
			if failure, ok := errors.AsType[*controller.Failure](err); ok {
				set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "Denied", Status: "True", Reason: failure.Reason}}
				if !fails {
					err = nil
				}
			}
			return errors.Join(err, r.UpdateStatus(ctx, set))
		})
	})
	p.Name = "denied-manager"
	return p
}

// TestShadowWantsRefusedWrites has writes that the API server refuses as dry runs, and syncs between their tries.
func TestShadowWantsRefusedWrites(t *testing.T) {
	p := deniedProgram(false)
	Run(t, p, func(t *testing.T, e *Env) {
		refused := []string{"create configmaps ns/a"}
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if slices.Contains(refused, write) {
				return noDryRun
			}
			return nil
		})
		e.Create(setOf("a"))
		time.Sleep(5 * time.Second)
		Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Annotations["touched"] = "yes" })
		wantDifferences(t, p.Name, nil) // the leader may still do it
		time.Sleep(7 * time.Second)
		wantDifferences(t, p.Name, map[string]float64{"configmaps": 1})
		Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Annotations["touched"] = "again" })
		time.Sleep(2 * plan.Lasting)
		wantDifferences(t, p.Name, map[string]float64{"configmaps": 1})

		set, _ := Get[*appsv1.StatefulSet](e, "ns", "a")
		owner := []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", OwnerReferences: owner}})
		e.Settle()
		wantDifferences(t, p.Name, nil)
	}, "--shadow")
}

// TestShadowOfDeniedWrite has a quota that denies a write to the leader and to the shadow. They agree if the
// status says so, also if the sync fails.
func TestShadowOfDeniedWrite(t *testing.T) {
	for _, fails := range []bool{false, true} {
		p := deniedProgram(fails)
		Run(t, p, func(t *testing.T, e *Env) {
			rejecting(e, "create configmaps", errQuota)
			denied := []appsv1.StatefulSetCondition{{Type: "Denied", Status: "True", Reason: controller.ReasonWriteDenied}}
			set := setOf("a")
			set.Status.Conditions = denied
			e.Create(set)
			time.Sleep(5 * plan.Lasting)
			wantDifferences(t, p.Name, nil)
			Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Status.Conditions = nil })
			time.Sleep(5 * plan.Lasting)
			wantDifferences(t, p.Name, map[string]float64{"statefulsets/status.apps": 1})
			Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Status.Conditions = denied })
			e.Settle()
			wantDifferences(t, p.Name, nil)
		}, "--shadow")
	}
}

// TestShadowWithoutPermission may not make a write that only the new version wants. No status says so.
func TestShadowWithoutPermission(t *testing.T) {
	p := deniedProgram(true)
	Run(t, p, func(t *testing.T, e *Env) {
		rejecting(e, "create configmaps", apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New(
			`User "me" cannot create resource "configmaps" in API group "" in the namespace "ns"`)))
		e.Create(setOf("a"))
		time.Sleep(5 * plan.Lasting)
		wantDifferences(t, p.Name, map[string]float64{"configmaps": 1})
	}, "--shadow")
}

// TestShadowOfFailingWrite has a webhook that fails for the leader, too. The status says so only after some time.
func TestShadowOfFailingWrite(t *testing.T) {
	p := failureProgram(showing)
	Run(t, p, func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", webhookDenial(500, "lookup failed"))
		e.Create(widget("ns", "v1"))
		time.Sleep(5 * plan.Lasting)
		wantDifferences(t, p.Name, map[string]float64{"widgets/status.test.example.com": 1})
	}, "--shadow")
}

// TestShadowWantsRefusedStatus has a CRD that lacks a field of the status, which only the shadow writes.
func TestShadowWantsRefusedStatus(t *testing.T) {
	p := oldProgram(1)
	Run(t, p, func(t *testing.T, e *Env) {
		installOlderCRD(e, "ns", "status/properties/image", `{"status":{"image":"v0"}}`)
		e.Create(widget("ns", "v1"))
		time.Sleep(2 * plan.Lasting) // a failure is retried with backoff
		wantDifferences(t, p.Name, map[string]float64{"widgets/status.old.example.com": 1})
	}, "--shadow")
}

// TestShadowWantsWriteThatIsRefused has a controller that writes no status, which could say that a write is refused.
func TestShadowWantsWriteThatIsRefused(t *testing.T) {
	p := ensureProgram()
	Run(t, p, func(t *testing.T, e *Env) {
		rejecting(e, "create services", errQuota)
		e.Create(owner("ns", map[string]string{"TCP": "1"}))
		time.Sleep(2 * plan.Lasting) // a failure is retried with backoff
		wantDifferences(t, p.Name, map[string]float64{"services": 1})
	}, "--shadow")
}

// TestPlanRepeatsRefusedWrite has a refused write and a conflict in one call, which is then repeated.
func TestPlanRepeatsRefusedWrite(t *testing.T) {
	p := deniedProgram(false)
	Run(t, p, func(t *testing.T, e *Env) {
		e.LoseLead()
		e.Create(setOf("a"))
		conflicts := 0
		e.BeforeWrite(func(write string, _ *http.Request) error {
			switch {
			case write == "create configmaps ns/a":
				return noDryRun
			case write == "patch statefulsets/status.apps ns/a" && conflicts == 0:
				conflicts++
				Update(e, "ns", "a", func(s *appsv1.StatefulSet) { s.Annotations["touched"] = "yes" })
			}
			return nil
		})
		r := planOf(t, e, p)
		if conflicts != 1 || len(r.Unknown) != 1 || len(r.Errors)+len(r.Changes) > 0 {
			t.Errorf("got the report %+v after %d conflicts, want one unknown write", r, conflicts)
		}
	})
}

// TestShadowAllowsForThePaceOfTheLeader wants to write a status that the leader may delay by 20 s.
func TestShadowAllowsForThePaceOfTheLeader(t *testing.T) {
	const interval = 20 * time.Second
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		sets.Paced(interval, nil)
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, _ := r.Object()
			set.Status.Replicas = 7
			return r.UpdateStatus(ctx, set)
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(setOf("a"))
		time.Sleep(interval + plan.Lasting - time.Second)
		wantDifferences(t, p.Name, nil)
		time.Sleep(2 * time.Second)
		wantDifferences(t, p.Name, map[string]float64{"statefulsets/status.apps": 1})
	}, "--shadow")
}

// TestDifferencesEndWithTheController switches one of two controllers of a shadow off.
func TestDifferencesEndWithTheController(t *testing.T) {
	configured(t, "{controllers: [a-controller, b-controller], shadow: true}", func(t *testing.T, e *Env, write func(string)) {
		e.Create(configMapOf("live", "one"))
		time.Sleep(plan.Lasting + time.Second)
		wantDifferences(t, "test", map[string]float64{"configmaps": 2})
		write("{controllers: b-controller, shadow: true}")
		time.Sleep(2 * time.Second)
		wantDifferences(t, "test", map[string]float64{"configmaps": 1})
	})
}

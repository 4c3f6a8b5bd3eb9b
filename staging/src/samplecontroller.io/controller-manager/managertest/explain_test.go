// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/supervisor"
)

func TestExplanation(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c)
		configMaps.Explain(func(r *controller.Request[*corev1.ConfigMap]) controller.Explanation {
			m, _ := r.Object()
			return controller.Explanation{Facts: []controller.Fact{controller.NewFact("a", "1", m.Data["a"])}, Next: "set a"}
		})
		return configMaps.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil })
	})
	const ns = "explanation"
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		deleted := configMapOf(ns, "deleted")
		deleted.Finalizers = []string{"test.example.com/other"}
		e.Create(configMapOf(ns, "a"), deleted)
		e.Delete(deleted)
		e.Settle()
		for name, want := range map[string]controller.Explanation{
			"a": {
				Found: true, Facts: []controller.Fact{{Name: "a", Wanted: "1", Differs: true}}, Next: "set a",
			},
			"b":       {Next: "nothing: the cache has no ConfigMap explanation/b"},
			"deleted": {Found: true, Next: "nothing: the object is being deleted"},
		} {
			got, err := e.controllers[0].(controller.Explainer).Explain(cache.NewObjectName(ns, name))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, explanation (-want +got):\n%s", name, err, diff)
			}
		}
		Update(e, ns, "deleted", func(m *corev1.ConfigMap) { m.Finalizers = nil })
	}, "--namespace="+ns)
}

// TestExplanationOfFailingWrite denies a write. The explanation then says when it is tried again.
func TestExplanationOfFailingWrite(t *testing.T) {
	explained := func(b *controller.Builder[*Widget]) {
		b.Explain(func(*controller.Request[*Widget]) controller.Explanation {
			return controller.Explanation{Next: "create the Secret"}
		})
	}
	Run(t, failureProgram(explained), func(t *testing.T, e *Env) {
		next := func() string {
			got, err := e.controllers[0].(controller.Explainer).Explain(cache.NewObjectName("ns", "a"))
			if err != nil {
				t.Fatal(err)
			}
			return got.Next
		}
		rejecting(e, "create secrets", webhookDenial(403, "no"))
		e.Create(widget("ns", "1"))
		e.Settle()
		delayed := e.controllers[0].(supervisor.Looper).Loops()[0].Progress(1).Delayed
		again := delayed.First[0].Time.UTC().Format(time.RFC3339)
		want := "create secrets ns/a again at " + again + ": creating Secret ns/a was denied: admission webhook"
		if got := next(); !strings.HasPrefix(got, want) {
			t.Errorf("next %q, want %q", got, want)
		}
		e.BeforeWrite(nil)
		sleep(time.Minute)
		if got := next(); got != "create the Secret" {
			t.Errorf("next, when writes succeed: %q", got)
		}
	})
}

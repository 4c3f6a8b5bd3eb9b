// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// rewriting is a webhook that changes the image v2 in Secrets to other.
func rewriting(write string, r *http.Request) error {
	if write != secretPatch {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	body = bytes.ReplaceAll(body, []byte(`"djI="`), []byte(`"b3RoZXI="`)) // v2 and other
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return err
}

// TestPlanOfRewrittenField plans while a webhook changes a field, which the status of the leader says.
func TestPlanOfRewrittenField(t *testing.T) {
	p := failureProgram(showing)
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		e.BeforeWrite(rewriting)
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		e.Settle()
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all, "Stalled RewrittenByAdmission")
		e.LoseLead()
		wantReport(t, planOf(t, e, p), 0)
		e.BeforeWrite(nil)
		wantReport(t, planOf(t, e, p), 1, "patch secrets ns/a data.image")
	})
}

// TestRewrittenFieldIsRetriedSlowly has a webhook that changes the image v2 in Secrets.
func TestRewrittenFieldIsRetriedSlowly(t *testing.T) {
	contested(t, func(t *testing.T, e *Env) {
		e.Events()
		e.BeforeWrite(rewriting)
		wantRewritten := func(when string, want bool, patches int) {
			t.Helper()
			all, message := conditions(e, "ns")
			if got := len(all) == 1 && all[0] == "Stalled RewrittenByAdmission"; got != want || want && !strings.HasPrefix(message,
				"/data/image of Secret ns/a is not kept as Widget ns/a declares it: admission changes it: ") {
				t.Errorf("%s: conditions %q with %q, want that it is rewritten: %t", when, all, message, want)
			}
			if n := count(e.Writes(), secretPatch); n != patches {
				t.Errorf("%s: %d patches, want %d", when, n, patches)
			}
		}
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		sleep(time.Second)
		wantRewritten("at first", true, 1)
		for range 28 {
			Update(e, "ns", "a", func(s *corev1.Secret) { s.Labels = map[string]string{"at": time.Now().Format("150405")} })
			sleep(10 * time.Second)
		}
		wantRewritten("after 281 s", true, 0)
		rival(e, "third")
		wantRewritten("after another writer", true, 1)
		sleep(5*time.Minute - time.Second)
		wantRewritten("after almost 5 minutes", true, 0)
		sleep(2 * time.Second)
		wantRewritten("after 5 minutes", true, 1)
		if events := e.Events(); len(events) != 1 {
			t.Errorf("Events %q, want one", events)
		}
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Name = "renamed" })
		sleep(time.Second)
		wantRewritten("after a new generation", true, 1)
		sleep(22 * time.Minute)
		wantRewritten("after 22 minutes", true, 4)
		e.BeforeWrite(nil)
		sleep(5 * time.Minute)
		wantRewritten("without the webhook", false, 1)
	})
}

// twice has a controller that sets the image in a Secret, and then a label, by a second write of the same object. It
// adds what Contest returns to found.
func twice(found *[]*controller.Failure) manager.Program {
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c, controller.MayPatchStatus())
		secrets := controller.Owns[*corev1.Secret](widgets)
		secrets.DescribeContests(func(w *Widget, s *corev1.Secret, f controller.Failure) (reason, message string) {
			return "OurReason", fmt.Sprintf("%s %s %s %v", w.Name, s.Name, f.Field, f.Retry)
		})
		showing(widgets)
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := secrets.Ensure(ctx, r, w.Name, func(s *corev1.Secret) {
				s.Data = map[string][]byte{"image": []byte(w.Spec.Containers[0].Image)}
			})
			if s, ok := secrets.Get(r, w.Name); ok && err == nil {
				_, err = secrets.Patch(ctx, r, s)
			}
			if f := secrets.Contest(r, w.Name); f != nil {
				*found = append(*found, f)
			}
			return err
		})
	}
	return p
}

// TestSecondWriteKeepsContest writes an object twice in each call. The contest is described by the controller.
func TestSecondWriteKeepsContest(t *testing.T) {
	var found []*controller.Failure
	runFailing(t, twice(&found), func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		for range 8 {
			rival(e, "other")
			sleep(time.Second)
		}
		e.Writes()
		all, message := conditions(e, "ns")
		const want = "a a /data/image 10s"
		if len(all) != 1 || all[0] != "Stalled OurReason" || message != want {
			t.Errorf("conditions %q with message %q, want Stalled OurReason with %q", all, message, want)
		}
		sleep(10 * time.Second) // after the field was held, and before the contest ends
		if n := count(e.Writes(), secretPatch); n != 1 {
			t.Errorf("%d patches, want one after 10 s", n)
		}
		if len(found) == 0 {
			t.Fatal("Contest has returned nothing")
		}
		f := found[len(found)-1]
		if f.Reason != "OurReason" || f.Field != "/data/image" || f.Retry != 10*time.Second || f.Object.Name != "a" || f.Verb != "patch" {
			t.Errorf("Contest returned %+v", f)
		}
		if events := e.Events(); len(events) != 1 {
			t.Errorf("Events %q, want one", events)
		}
	})
}

// TestDeniedWriteIsShownBeforeContest denies a patch of another field.
func TestDeniedWriteIsShownBeforeContest(t *testing.T) {
	contested(t, func(t *testing.T, e *Env) {
		compete(t, e)
		rejecting(e, secretPatch, errQuota)
		Update(e, "ns", "a", func(s *corev1.Secret) { s.Data["more"] = []byte("x") })
		sleep(0)
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all, "Stalled WriteDenied")
	})
}

// TestDroppedFieldIsNotContested sets a field that the API server does not store.
func TestDroppedFieldIsNotContested(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		secrets := controller.Owns[*corev1.Secret](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := secrets.Ensure(ctx, r, m.Name, func(s *corev1.Secret) { s.StringData = map[string]string{"a": "b"} })
			return err
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(owner("ns", nil))
		e.Settle()
		for i := range 8 {
			Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"i": fmt.Sprint(i)} })
			e.Settle()
		}
		if n := count(e.Writes(), secretPatch); n < 8 {
			t.Errorf("%d patches, want one each time", n)
		}
		expect(t, "Events", e.Events())
	})
}

// TestDefaultsAreNotContested changes an image several times, in a Pod template without its defaults.
func TestDefaultsAreNotContested(t *testing.T) {
	Run(t, templateProgram(), func(t *testing.T, e *Env) {
		e.Create(owner("ns", map[string]string{"image": "v1"}))
		e.Settle()
		for i := range 8 {
			Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = strings.Repeat("v", i+1) })
			e.Settle()
			Update(e, "ns", "a", func(d *appsv1.Deployment) { d.Labels = map[string]string{"image": strings.Repeat("v", i+1)} })
			e.Settle()
		}
		expect(t, "Events", e.Events())
		if log := e.logged(); strings.Contains(log, "does not stay") {
			t.Errorf("the log is %s, want no line about a field that does not stay", log)
		}
	})
}

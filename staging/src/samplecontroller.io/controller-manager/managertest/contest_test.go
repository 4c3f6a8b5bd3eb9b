// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const secretPatch = "patch secrets ns/a"

// rival sets the image in Secret ns/a, as another writer does.
func rival(e *Env, image string) {
	e.t.Helper()
	Update(e, "ns", "a", func(s *corev1.Secret) { s.Data["image"] = []byte(image) })
	sleep(0)
}

// contested runs a test of a Widget whose Secret has the image v1.
func contested(t *testing.T, body func(t *testing.T, e *Env)) {
	t.Helper()
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		sleep(time.Minute)
		e.Writes()
		body(t, e)
	})
}

// wantContest compares the condition that says that the image is contested, and how often the Secret was written.
func wantContest(t *testing.T, e *Env, when string, want bool, patches int) {
	t.Helper()
	all, _ := conditions(e, "ns")
	if got := len(all) == 1 && all[0] == "Stalled Contested"; got != want || len(all) > 1 {
		t.Errorf("%s: conditions %q, want the contest: %t", when, all, want)
	}
	if n := count(e.Writes(), secretPatch); n != patches {
		t.Errorf("%s: %d patches, want %d", when, n, patches)
	}
}

// compete sets the image until the controller holds it with the value other.
func compete(t *testing.T, e *Env) {
	t.Helper()
	for range 8 {
		rival(e, "other")
		sleep(time.Second)
	}
	wantContest(t, e, "held", true, 6)
}

// TestContestedFieldIsCorrectedSlowly has a rival that sets a field each second. The first correction does not
// count: this process has not written the field before.
func TestContestedFieldIsCorrectedSlowly(t *testing.T) {
	contested(t, func(t *testing.T, e *Env) {
		e.Events()
		var patched []int
		statuses := 0
		for second := range 40 {
			rival(e, "other")
			writes := e.Writes()
			if count(writes, secretPatch) > 0 {
				patched = append(patched, second)
			}
			statuses += count(writes, statusPatch)
			all, message := conditions(e, "ns")
			if got, want := len(all) > 0, second >= 3; got != want {
				t.Errorf("second %d: conditions %q, want one: %t", second, all, want)
			}
			const want = "/data/image of Secret ns/a is also set by another writer, shown by kubectl get --show-managed-fields: stop the " +
				"other writer, or do not declare the field in Widget ns/a; until then it is corrected at most every 10s"
			if len(all) > 0 && (all[0] != "Stalled Contested" || message != want) {
				t.Errorf("conditions %q with message\n%q, want\n%q", all, message, want)
			}
			sleep(time.Second + time.Millisecond) // never at the time of a correction
		}
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 15, 25, 35}, patched); diff != "" {
			t.Errorf("patched at other seconds (-want +got):\n%s", diff)
		}
		if events := e.Events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning Contested /data/image of") || statuses != 1 {
			t.Errorf("%d status writes, Events %q, want one of each", statuses, events)
		}
		if log := e.logged(); strings.Count(log, "Field does not stay as declared") != 1 {
			t.Errorf("the log is %s, want one line about the field", log)
		}
		// The last correction stands.
		sleep(5 * time.Second)
		wantContest(t, e, "after the last correction", true, 1)
		sleep(19 * time.Second)
		wantContest(t, e, "19 s after the rival has stopped", true, 0)
		sleep(2 * time.Second)
		wantContest(t, e, "21 s after the rival has stopped", false, 0)
		rival(e, "other")
		wantContest(t, e, "at the third correction within an hour", true, 1)
		sleep(time.Second)
		rival(e, "other")
		wantContest(t, e, "a second later", true, 1)
	})
}

// TestSlowRivalIsNamed has a rival that sets the field each minute. The contest does not disappear from the status
// between two corrections.
func TestSlowRivalIsNamed(t *testing.T) {
	contested(t, func(t *testing.T, e *Env) {
		for i := range 10 {
			rival(e, "other")
			wantContest(t, e, "correction", i >= 3, 1)
			sleep(time.Minute)
			wantContest(t, e, "between two corrections", i >= 3, 0)
		}
		sleep(time.Minute + time.Second) // it ends after twice the pause
		wantContest(t, e, "two minutes after the last correction", false, 0)
	})
}

// TestOtherWritesAreNotContested sets a field back rarely, sets it to other values, and shares it with a writer of
// the same value.
func TestOtherWritesAreNotContested(t *testing.T) {
	for name, test := range map[string]struct {
		pause time.Duration
		do    func(e *Env, i int)
	}{
		"every half hour": {31 * time.Minute, func(e *Env, _ int) { rival(e, "other") }},
		"another value each time": {time.Second, func(e *Env, i int) {
			Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = strings.Repeat("v", i+1) })
			sleep(0)
			rival(e, "other")
		}},
		"another field": {time.Second, func(e *Env, _ int) {
			Update(e, "ns", "a", func(s *corev1.Secret) { s.Labels = map[string]string{"at": time.Now().Format("150405")} })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			contested(t, func(t *testing.T, e *Env) {
				for i := range 20 {
					test.do(e, i)
					sleep(test.pause)
					s, _ := Get[*corev1.Secret](e, "ns", "a")
					if all, _ := conditions(e, "ns"); len(all) > 0 || string(s.Data["image"]) == "other" {
						t.Fatalf("after %d times: conditions %q, Secret %s", i+1, all, s.Data)
					}
				}
			})
		})
	}
}

// TestContestEndsWithChangeOfOwner lets the owner want what the rival sets.
func TestContestEndsWithChangeOfOwner(t *testing.T) {
	contested(t, func(t *testing.T, e *Env) {
		compete(t, e)
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "other" })
		sleep(0)
		wantContest(t, e, "after", false, 0)
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		sleep(0)
		wantContest(t, e, "after another change", false, 1)
	})
}

// TestHeldFieldHoldsBackNoOther contests one field, and changes another one.
func TestHeldFieldHoldsBackNoOther(t *testing.T) {
	contested(t, func(t *testing.T, e *Env) {
		compete(t, e)
		Update(e, "ns", "a", func(s *corev1.Secret) { s.Data["more"] = []byte("x") })
		sleep(0)
		s, _ := Get[*corev1.Secret](e, "ns", "a")
		if string(s.Data["image"]) != "other" || s.Data["more"] != nil {
			t.Errorf("Secret %s, want the image held, and the other field removed", s.Data)
		}
		wantContest(t, e, "after", true, 1)
	})
}

// TestHeldElementOfList contests the value or the presence of an element, in a container whose image changes.
func TestHeldElementOfList(t *testing.T) {
	for name, test := range map[string]struct {
		change func([]corev1.EnvVar) []corev1.EnvVar
		want   []corev1.EnvVar
	}{
		"value": {func(env []corev1.EnvVar) []corev1.EnvVar {
			env[0].Value = "other"
			return env
		}, []corev1.EnvVar{{Name: "MODE", Value: "other"}}},
		"presence": {func([]corev1.EnvVar) []corev1.EnvVar { return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, deployingProgram(), func(t *testing.T, e *Env) {
				e.Create(owner("ns", map[string]string{"image": "v1", "mode": "fast"}))
				e.Settle()
				e.Writes()
				for range 8 {
					Update(e, "ns", "a", func(d *appsv1.Deployment) {
						c := &d.Spec.Template.Spec.Containers[0]
						c.Env = test.change(append(c.Env, corev1.EnvVar{Name: "MODE"})[:1])
					})
					sleep(time.Second)
				}
				if n := count(e.Writes(), "patch deployments.apps ns/a"); n != 6 {
					t.Errorf("%d patches, want 6", n)
				}
				Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["image"] = "v2" })
				sleep(time.Second)
				expect(t, "writes", e.Writes(), "patch deployments.apps ns/a")
				d, _ := Get[*appsv1.Deployment](e, "ns", "a")
				app := d.Spec.Template.Spec.Containers[0]
				if diff := cmp.Diff(test.want, app.Env); diff != "" || app.Image != "v2" {
					t.Errorf("image %s, want v2; environment (-want +got):\n%s", app.Image, diff)
				}
				sleep(20 * time.Second)
				if d, _ = Get[*appsv1.Deployment](e, "ns", "a"); d.Spec.Template.Spec.Containers[0].Env[0].Value != "fast" {
					t.Errorf("environment %v, want it corrected", d.Spec.Template.Spec.Containers[0].Env)
				}
			})
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/internal/fakeapi"
	"samplecontroller.io/controller-manager/manager"
)

// runLagging runs the program of ensureProgram in memory. hold makes the watch of the owners lag until
// the returned function is called.
func runLagging(t *testing.T, body func(t *testing.T, e *Env, hold func() (release func()))) {
	t.Helper()
	runLaggingProgram(t, ensureProgram(), "configmaps", body)
}

// runLaggingProgram is runLagging for a program that reconciles the objects of a resource.
func runLaggingProgram(t *testing.T, p manager.Program, resource string,
	body func(t *testing.T, e *Env, hold func() (release func()))) {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		lagging := &laggingWatch{RoundTripper: fakeapi.New(schemeOf(t, p)), resource: resource}
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, lagging)
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) {
			body(t, e, lagging.hold)
		}, nil)
	})
}

// TestNewLeaderConfirmsOwner changes an owner, and what it owns as another leader would, while the
// cache of owners of the next leader is behind. It must not set back what the other leader did.
func TestNewLeaderConfirmsOwner(t *testing.T) {
	again := func() *corev1.ConfigMap { return owner("ns", map[string]string{"UDP": "53"}) }
	for name, byOther := range map[string]func(e *Env){
		"updated": func(e *Env) {
			Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["UDP"] = "54" })
			Update(e, "ns", "a", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(54) })
		},
		"deleted with its owner": func(e *Env) {
			e.Delete(again())
			e.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		},
		"owner created again": func(e *Env) {
			e.Delete(again())
			e.Create(again())
			next, _ := Get[*corev1.ConfigMap](e, "ns", "a")
			Update(e, "ns", "a", func(s *corev1.Service) { s.OwnerReferences[0].UID = next.UID })
		},
	} {
		t.Run(name, func(t *testing.T) {
			runLagging(t, func(t *testing.T, e *Env, hold func() func()) {
				e.Create(again())
				e.Settle()
				expect(t, "writes", e.Writes(), "create services ns/a")
				e.LoseLead()
				release := hold()
				byOther(e)
				e.Lead()
				time.Sleep(10 * time.Second)
				expect(t, "writes while the cache is behind", e.Writes())
				release()
				time.Sleep(time.Minute)
				expect(t, "writes", e.Writes())
			})
		})
	}
}

// TestNewLeaderConfirmsBeforeCleanUp makes another leader finalize an object, and create it again, while
// the cache of the next leader has the object in deletion.
func TestNewLeaderConfirmsBeforeCleanUp(t *testing.T) {
	v := &vault{}
	runLaggingProgram(t, vaultProgram(v), "configmaps", func(t *testing.T, e *Env, hold func() func()) {
		e.Create(configMapOf("ns", "a"))
		e.Settle()
		expect(t, "calls", v.next(false, nil), "put a")
		e.LoseLead()
		e.Delete(configMapOf("ns", "a"))
		synctest.Wait()
		release := hold()
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Finalizers = nil })
		again := configMapOf("ns", "a")
		again.Finalizers = []string{vaultFinalizer}
		e.Create(again)
		e.Lead()
		time.Sleep(10 * time.Second)
		expect(t, "calls while the cache is behind", v.next(false, nil))
		release()
		time.Sleep(time.Minute)
		expect(t, "calls", slices.Compact(v.next(false, nil)), "put a")
	})
}

// TestDependentIsNotCreatedForDeletedOwner deletes an owner and, as the garbage collector would, what
// it owns. The cache sees the end of the owner last.
func TestDependentIsNotCreatedForDeletedOwner(t *testing.T) {
	runLagging(t, func(t *testing.T, e *Env, hold func() func()) {
		m := owner("ns", map[string]string{"UDP": "53"})
		e.Create(m)
		e.Settle()
		time.Sleep(5 * time.Minute) // the cache has reached the version of the confirmation
		e.Writes()
		release := hold()
		e.Delete(m)
		e.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		time.Sleep(10 * time.Second)
		release()
		time.Sleep(time.Minute)
		expect(t, "writes", e.Writes())
	})
}

// TestConfirmationsEnd counts the reads of owners: one for the first write in a term, none once the
// cache has caught up.
func TestConfirmationsEnd(t *testing.T) {
	reads := 0
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		p := ensureProgram()
		api := fakeapi.New(schemeOf(t, p))
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, afterReads(api, "/configmaps", func() { reads++ }))
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) {
			e.Create(owner("ns", map[string]string{"UDP": "53"}))
			e.Settle()
			if reads != 1 {
				t.Errorf("%d reads before the first write, want 1", reads)
			}
			time.Sleep(5 * time.Minute)
			for _, port := range []string{"54", "55"} {
				Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["UDP"] = port })
				e.Settle()
			}
			if reads != 1 {
				t.Errorf("%d reads in the term, want 1", reads)
			}
			e.LoseLead()
			e.Lead()
			Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data["UDP"] = "56" })
			e.Settle()
			if reads != 2 {
				t.Errorf("%d reads in two terms, want 2", reads)
			}
		}, nil)
	})
}

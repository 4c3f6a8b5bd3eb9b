// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/fakeapi"
)

// TestNewLeaderConfirmsPause pauses an object and changes what it owns, while the cache of the next leader is behind.
func TestNewLeaderConfirmsPause(t *testing.T) {
	runLaggingProgram(t, failureProgram(), "widgets", func(t *testing.T, e *Env, hold func() func()) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
		e.LoseLead()
		release := hold()
		annotate(e, "true")
		Update(e, "ns", "a", func(s *corev1.Secret) { s.Data = nil })
		e.Lead()
		sleep(10 * time.Second)
		expect(t, "writes while the cache is behind", e.Writes())
		release()
		sleep(time.Minute)
		expect(t, "writes of a paused object", e.Writes(), statusPatch)
		annotate(e, "-")
		e.Settle()
		expect(t, "writes of a resumed object", e.Writes(), "patch secrets ns/a", statusPatch)
	})
}

// createInNamespace creates a Widget in a namespace that is not paused, and returns what is written for it.
func createInNamespace(e *Env) []string {
	e.Create(namespace(nil), widget("ns", "v1"))
	e.Settle()
	return e.Writes()
}

// failOver pauses the namespace of the Widget, and makes a change, while another process leads and the cache is held.
// Then the program leads for 10 s.
func failOver(e *Env, hold func() func(), change func()) (release func()) {
	e.LoseLead()
	release = hold()
	annotateNamespace(e, "true")
	change()
	synctest.Wait()
	e.Lead()
	sleep(10 * time.Second)
	return release
}

// TestNewLeaderConfirmsPauseOfNamespace pauses the namespace, while the cache of the next leader is behind.
func TestNewLeaderConfirmsPauseOfNamespace(t *testing.T) {
	runLaggingProgram(t, failureProgram(), "namespaces", func(t *testing.T, e *Env, hold func() func()) {
		expect(t, "writes", createInNamespace(e), "create secrets ns/a", statusPatch)
		release := failOver(e, hold, func() { Update(e, "ns", "a", func(s *corev1.Secret) { s.Data = nil }) })
		expect(t, "writes while the cache is behind", e.Writes(), statusPatch)
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all, "Paused PausedByNamespace")
		release()
		sleep(time.Minute)
		expect(t, "writes when the cache has the pause", e.Writes())
		annotateNamespace(e, "-")
		e.Settle()
		expect(t, "writes of a resumed object", e.Writes(), "patch secrets ns/a", statusPatch)
	})
}

const conditionOfPredecessor = `"conditions":[{"type":"Paused","status":"True","reason":"PausedByNamespace",` +
	`"lastTransitionTime":"2000-01-01T00:00:00Z","message":"Paused by the annotation ` + paused + ` of namespace ns until ` +
	`it is removed; to resume: kubectl annotate namespace ns ` + paused + `-"}]`

// TestNewLeaderConfirmsResume has a condition of the predecessor, whose pause the cache of the next leader lacks.
// Nothing but the condition is to be written.
func TestNewLeaderConfirmsResume(t *testing.T) {
	runLaggingProgram(t, failureProgram(), "namespaces", func(t *testing.T, e *Env, hold func() func()) {
		expect(t, "writes", createInNamespace(e), "create secrets ns/a", statusPatch)
		release := failOver(e, hold, func() { patchWidget(e, "ns", `{"status":{`+conditionOfPredecessor+`}}`, "status") })
		release()
		sleep(time.Minute)
		expect(t, "writes of a paused object", e.Writes())
		expect(t, "Events", e.Events())
	})
}

// TestSecondaryConfirmsPauseOfNamespace has a controller that writes a status without the condition Paused.
func TestSecondaryConfirmsPauseOfNamespace(t *testing.T) {
	p := withOther(controller.Secondary())
	p.Controllers = p.Controllers[1:] // the other one runs elsewhere
	runLaggingProgram(t, p, "namespaces", func(t *testing.T, e *Env, hold func() func()) {
		expect(t, "writes", createInNamespace(e), statusPatch)
		release := failOver(e, hold, func() {
			patchWidget(e, "ns", `{"status":{"ports":7,`+conditionOfPredecessor+`}}`, "status")
		})
		release()
		sleep(time.Minute)
		expect(t, "writes of a paused object", e.Writes())
		annotateNamespace(e, "-")
		e.Settle()
		expect(t, "writes of a resumed object", e.Writes(), statusPatch)
	})
}

// TestResumeWhoseCacheNeverHadThePause breaks the watch of namespaces until a pause has ended that a new leader has
// read. The cache is then listed again.
func TestResumeWhoseCacheNeverHadThePause(t *testing.T) {
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		p := failureProgram()
		api := fakeapi.New(schemeOf(t, p))
		lagging := &laggingWatch{RoundTripper: api, resource: "namespaces"}
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, lagging)
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) {
			expect(t, "writes", createInNamespace(e), "create secrets ns/a", statusPatch)
			release := failOver(e, lagging.hold, func() { Update(e, "ns", "a", func(s *corev1.Secret) { s.Data = nil }) })
			expect(t, "writes of the new leader", e.Writes(), statusPatch)
			annotateNamespace(e, "-")
			api.Compact()
			lagging.broken.Store(true)
			release()
			sleep(time.Minute)
			expect(t, "writes of a resumed object", e.Writes(), "patch secrets ns/a", statusPatch)
		}, nil)
	})
}

// TestUnansweredReadOfNamespace ends a new leader while the API server does not answer it. The term is to end in time.
func TestUnansweredReadOfNamespace(t *testing.T) {
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		p := failureProgram()
		api := fakeapi.New(schemeOf(t, p))
		var hangs atomic.Bool
		hanging := roundTripper(func(r *http.Request) (*http.Response, error) {
			if hangs.Load() && strings.HasSuffix(r.UserAgent(), "/pause") && r.URL.Query().Get("watch") == "" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return api.RoundTrip(r)
		})
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, hanging)
		e.wait = synctest.Wait
		e.run(t, p, func(t *testing.T, e *Env) {
			createInNamespace(e)
			e.LoseLead()
			Update(e, "ns", "a", func(s *corev1.Secret) { s.Data = nil })
			synctest.Wait()
			hangs.Store(true)
			e.Writes()
			e.Lead()
			sleep(time.Second)
			began := time.Now()
			e.stopProgram()
			<-e.ended
			if took := time.Since(began); e.err != nil || took > 5*time.Second {
				t.Errorf("the program takes %v to end, with the error %v", took, e.err)
			}
			expect(t, "writes", e.Writes())
		}, nil)
	})
}

// TestReadsOfNamespaceAtFailover counts how often a new leader reads a namespace if its first reads succeed or fail.
func TestReadsOfNamespaceAtFailover(t *testing.T) {
	for name, test := range map[string]struct {
		err    *apierrors.StatusError // of the reads in the first 5 s
		writes []string               // in that time
		later  int32                  // reads after that time
	}{
		"once in a term": {nil, []string{"patch secrets ns/a"}, 0},
		"not permitted":  {apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil), []string{"patch secrets ns/a"}, 1},
		"failing":        {apierrors.NewInternalError(errors.New("etcd")), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			running.Lock()
			defer running.Unlock()
			synctest.Test(t, func(t *testing.T) {
				p := failureProgram()
				api := fakeapi.New(schemeOf(t, p))
				var reads atomic.Int32
				var fails atomic.Pointer[apierrors.StatusError]
				failing := roundTripper(func(r *http.Request) (*http.Response, error) {
					isList := strings.HasSuffix(r.UserAgent(), "/pause") && r.URL.Query().Get("watch") == ""
					if err := fails.Load(); err != nil && isList {
						return fakeapi.Answer(r, int(err.Status().Code), err.Status())
					}
					return api.RoundTrip(r)
				})
				e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"},
					afterReads(failing, "/namespaces", func() { reads.Add(1) }))
				e.wait = synctest.Wait
				e.run(t, p, func(t *testing.T, e *Env) {
					expect(t, "writes", createInNamespace(e), "create secrets ns/a", statusPatch)
					e.LoseLead()
					Update(e, "ns", "a", func(s *corev1.Secret) { s.Data = nil })
					synctest.Wait()
					reads.Store(0)
					fails.Store(test.err)
					e.Lead()
					sleep(5 * time.Second)
					expect(t, "writes of the new leader", e.Writes(), test.writes...)
					if n := reads.Swap(0); n == 0 || n > 1 && test.err == nil {
						t.Errorf("the namespace is read %d times", n)
					}
					fails.Store(nil)
					sleep(10 * time.Second)
					change(e, "v2")
					e.Settle()
					if n := count(e.Writes(), "patch secrets ns/a"); n == 0 || reads.Load() != test.later {
						t.Errorf("later, the Secret is written %d times, and the namespace read %d times, want %d", n, reads.Load(), test.later)
					}
				}, nil)
			})
		})
	}
}

// TestPauseDuringConfirmation pauses an object just after the API server has answered that it is as in the cache.
func TestPauseDuringConfirmation(t *testing.T) {
	running.Lock()
	defer running.Unlock()
	synctest.Test(t, func(t *testing.T) {
		p, after := failureProgram(), func() {}
		api := fakeapi.New(schemeOf(t, p))
		e := newEnv(t, schemeOf(t, p), &rest.Config{Host: "http://api.test"}, afterReads(api, "/widgets", func() { after() }))
		e.wait = synctest.Wait
		after = func() {
			annotate(e, "true")
			time.Sleep(100 * time.Millisecond) // until the cache has it
		}
		e.run(t, p, func(t *testing.T, e *Env) {
			e.Create(widget("ns", "v1"))
			e.Settle()
			expect(t, "writes of a paused object", e.Writes(), statusPatch)
		}, nil)
	})
}

// afterReads returns a transport that calls a function after each list of a single object of a resource.
func afterReads(next http.RoundTripper, resource string, after func()) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if strings.HasSuffix(r.URL.Path, resource) && strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=") {
			after()
		}
		return response, err
	})
}

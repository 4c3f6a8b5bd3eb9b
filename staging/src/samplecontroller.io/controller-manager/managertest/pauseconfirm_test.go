// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

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

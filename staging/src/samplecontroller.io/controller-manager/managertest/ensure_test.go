// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"samplecontroller.io/controller-manager/internal/supervisor"
)

// TestServiceWithTwoProtocols has one port number for UDP and TCP, as DNS has.
func TestServiceWithTwoProtocols(t *testing.T) {
	runEnsure(t, "ensure-dns", func(t *testing.T, e *Env) {
		e.Create(owner("ensure-dns", map[string]string{"UDP": "53"}))
		e.Settle()
		expect(t, "writes", e.Writes(), "create services ensure-dns/a")
		for _, change := range []map[string]string{
			{"UDP": "53", "TCP": "53"},
			{"UDP": "53", "TCP": "5353"},
			{"UDP": "5300", "TCP": "5353"},
			{"UDP": "5300"},
			{"TCP": "53"},
		} {
			Update(e, "ensure-dns", "a", func(c *corev1.ConfigMap) { c.Data = change })
			e.Settle()
			service, _ := Get[*corev1.Service](e, "ensure-dns", "a")
			if diff := cmp.Diff(wantedPorts(change), service.Spec.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			expect(t, "writes", e.Writes(), "patch services ensure-dns/a")
		}
	})
}

func TestUnknownFieldsSurvive(t *testing.T) {
	const ns = "ensure-unknown"
	runEnsure(t, ns, func(t *testing.T, e *Env) {
		e.Create(owner(ns, map[string]string{"image": "v1"}))
		e.Settle()
		expectWidget(e, ns, "status", `{"image":"v1","ports":0}`)
		patchWidget(e, ns, `{"spec":{"other":1,"containers":[
			{"name":"sidecar","image":"s","new":{"a":1}},
			{"name":"app","image":"v1","new":true,
			 "ports":[{"containerPort":53,"protocol":"UDP","new":2},{"containerPort":53,"protocol":"TCP"}],
			 "env":[{"name":"A","value":"1","new":3}]}]}}`)
		patchWidget(e, ns, `{"status":{"new":{"b":[1]}}}`, "status")
		Update(e, ns, "a", func(c *corev1.ConfigMap) { c.Data["image"] = "v2" })
		e.Settle()
		expectWidget(e, ns, "spec", `{"other":1,"containers":[
			{"name":"sidecar","image":"s","new":{"a":1}},
			{"name":"app","image":"v2","new":true,
			 "ports":[{"containerPort":53,"protocol":"UDP","new":2},{"containerPort":53,"protocol":"TCP"}],
			 "env":[{"name":"A","value":"1","new":3}]}]}`)
		expectWidget(e, ns, "status", `{"image":"v2","ports":2,"new":{"b":[1]}}`)
	})
}

// TestStaleWriteIsRejected changes a Widget just before it is written: another field, which container
// has the index in the patch, or whether there are any.
func TestStaleWriteIsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		change, rejection, want string
	}{
		"field": {`{"spec":{"other":1}}`, ": Conflict", `{"other":1,"containers":[{"name":"app","image":"v2"}]}`},
		"container": {
			`{"spec":{"containers":[{"name":"sidecar","image":"s"},{"name":"app","image":"v1"}]}}`, ": Invalid",
			`{"containers":[{"name":"sidecar","image":"s"},{"name":"app","image":"v2"}]}`,
		},
		"none": {
			`{"spec":{"containers":[]}}`, ": Invalid", `{"containers":[{"name":"app","image":"v2","resources":{}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns := "ensure-stale-" + name
			write := "patch widgets.test.example.com " + ns + "/a"
			runEnsure(t, ns, func(t *testing.T, e *Env) {
				e.Create(owner(ns, map[string]string{"image": "v1"}))
				e.Settle()
				patchWidget(e, ns, `{"spec":{"containers":[{"name":"app","image":"v1"}]}}`) // without resources
				e.Settle()
				e.Writes()
				e.BeforeWrite(func(got string, _ *http.Request) error {
					if got == write {
						e.BeforeWrite(nil)
						patchWidget(e, ns, test.change)
					}
					return nil
				})
				Update(e, ns, "a", func(c *corev1.ConfigMap) { c.Data["image"] = "v2" })
				e.Settle()
				specWrites := slices.DeleteFunc(e.Writes(), func(w string) bool { return !strings.HasPrefix(w, write) })
				expect(t, "writes", specWrites, write+test.rejection, write)
				expectWidget(e, ns, "spec", test.want)
			})
		})
	}
}

// TestPatchThatNeverAppliesIsVisible answers like the API server if an element of a list is not where
// it is in the cache. If a transform has dropped the elements before it, no newer cache helps.
func TestPatchThatNeverAppliesIsVisible(t *testing.T) {
	Run(t, ensureProgram(), func(t *testing.T, e *Env) {
		e.Create(owner("ns", map[string]string{"image": "v1"}))
		e.Settle()
		e.BeforeWrite(func(string, *http.Request) error {
			return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0,
				false)
		})
		Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["image"] = "v2" })
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, c := range e.controllers {
			p := c.(supervisor.Looper).Loops()[0].Progress(1)
			if c.Name() != "owner-controller" {
				continue
			}
			if p.Failing != 1 || !strings.Contains(p.Failures[0].Error, "the stored object is not as in the cache") {
				t.Errorf("%d objects are failing, %v, want one", p.Failing, p.Failures)
			}
		}
	})
}

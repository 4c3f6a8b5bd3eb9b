// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// statusReader is the ClusterRole for users who may see the status of the controllers.
const statusReader = "sample-controller-manager-status-reader"

func TestStatusNeedsPermission(t *testing.T) {
	ns := newNamespace(t)
	foos.Create(t, ns, "a", 1)
	server := startDaemon(t)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	for who, test := range map[string]struct {
		token string
		want  int
	}{
		"anonymous":         {"", http.StatusUnauthorized},
		"an invalid token":  {"c4n4ry", http.StatusUnauthorized},
		"no role":           {token(t, newNamespace(t)), http.StatusForbidden},
		"metrics scraper":   {token(t, newNamespace(t), "sample-controller-manager-metrics-reader"), http.StatusForbidden},
		"viewer of objects": {token(t, newNamespace(t), "view"), http.StatusForbidden},
		"a reader":          {token(t, newNamespace(t), statusReader), http.StatusOK},
	} {
		for _, path := range []string{"", "/foo-controller", "/foo-controller/" + ns + "/a"} {
			for _, format := range []string{"", "?format=json"} {
				body := get(t, server, debug.Path+path+format, test.token, test.want)
				if test.want != http.StatusOK {
					if strings.Contains(body, "Running") {
						t.Errorf("%s: got %q", who, body)
					}
					continue
				}
				if isJSON := json.Valid([]byte(body)); isJSON != (format != "") || !strings.Contains(body, "foo-controller") {
					t.Errorf("%s%s answers\n%s", path, format, body)
				}
			}
		}
		if test.want == http.StatusOK {
			for path, want := range map[string]int{"/bar-controller": http.StatusNotFound, "/bar-controller/a/b": http.StatusNotFound, "/foo-controller/a": http.StatusNotFound, "?limit=201": http.StatusBadRequest} {
				get(t, server, debug.Path+path, test.token, want)
			}
			get(t, server, "/statusz", test.token, http.StatusOK)
			get(t, server, "/metrics", test.token, http.StatusForbidden)
		}
	}
	// Paths outside of the role, for a user with all permissions.
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	get(t, server, debug.Path, admin, http.StatusOK)
	if code, body, err := server.Put(t.Context(), debug.Path, admin, ""); err != nil || code != http.StatusMethodNotAllowed {
		t.Errorf("PUT answers %d %s, %v, want 405", code, body, err)
	}
}

// viewer reads the status of a daemon.
type viewer struct {
	t      *testing.T
	server *apptesting.Server
	token  string
}

func newViewer(t *testing.T, server *apptesting.Server) viewer {
	t.Helper()
	return viewer{t, server, token(t, newNamespace(t), statusReader)}
}

// page returns a page as text and as JSON, and decodes the JSON.
func (v viewer) page(path string, into any) string {
	v.t.Helper()
	body := get(v.t, v.server, debug.Path+path+"?format=json", v.token, http.StatusOK)
	if err := json.Unmarshal([]byte(body), into); err != nil {
		v.t.Fatal(err)
	}
	return get(v.t, v.server, debug.Path+path, v.token, http.StatusOK)
}

// waitExplained waits until check accepts the explanation of an object.
func (v viewer) waitExplained(controller, ns, name, what string, check func(debug.Explanation) bool) {
	v.t.Helper()
	path := "/" + controller + "/" + ns + "/" + name
	clustertest.WaitUntil(v.t, what, func(context.Context) error {
		var e debug.Explanation
		if text := v.page(path, &e); !check(e) {
			return errors.New(text)
		}
		return nil
	})
}

// wrote reports whether a sync has a write, given as verb, resource and result.
func wrote(o reconcile.Outcome, write string) bool {
	return slices.ContainsFunc(o.Writes, func(w reconcile.Write) bool { return w.String() == write })
}

func TestStatusExplainsObjects(t *testing.T) {
	ownCluster(t) // because it changes the CRD
	ns, full := newNamespace(t), newNamespace(t)
	exhaustQuota(t, full)
	createDeployment(t, ns, "foreign", map[string]string{"app": "foreign"}, nil)
	server := startDaemon(t)
	v := newViewer(t, server)
	differing := func(e debug.Explanation) (names []string) {
		for _, fact := range e.Facts {
			if fact.Differs {
				names = append(names, fact.Name)
			}
		}
		return names
	}

	// No status is delayed until the cache has caught up with the start of the term. The status
	// of the first Foo is an event that shows it that.
	foos.Create(t, ns, "first", 1)
	v.waitExplained(foos.Controller, ns, "first", "as declared", func(e debug.Explanation) bool {
		return e.Next == "nothing: everything is as declared"
	})
	foos.Create(t, ns, "served", 2)
	v.waitExplained(foos.Controller, ns, "served", "as declared", func(e debug.Explanation) bool {
		return e.State == "Running" && e.Next == "nothing: everything is as declared" && len(e.Facts) == 5 && len(differing(e)) == 0 && e.Facts[2].Wanted == "2" && e.Facts[2].Actual == "2"
	})
	// Any of the syncs may have met a stale cache, because the aggregator writes as well. A
	// sync is listed once it has ended.
	for what, satisfied := range map[string]func(reconcile.Outcome) bool{
		"a sync for the Foo":        func(s reconcile.Outcome) bool { return s.Trigger == "foos added" },
		"a sync for its Deployment": func(s reconcile.Outcome) bool { return strings.HasPrefix(s.Trigger, "deployments ") },
		"a sync that created the Deployment": func(s reconcile.Outcome) bool {
			return s.Result == "requeued" && s.Duration.Duration > 0 && wrote(s, "create deployments.apps: written")
		},
		"a sync that wrote the status": func(s reconcile.Outcome) bool {
			return wrote(s, "patch foos/status.samplecontroller.k8s.io: written")
		},
	} {
		v.waitExplained(foos.Controller, ns, "served", what, func(e debug.Explanation) bool {
			return slices.ContainsFunc(e.Syncs, satisfied)
		})
	}

	conflict := foos.New("conflict", 1)
	conflict.Spec.DeploymentName = "foreign"
	foos.Store(t, ns, conflict)
	v.waitExplained(foos.Controller, ns, "conflict", "the conflict is explained", func(e debug.Explanation) bool {
		return strings.HasPrefix(e.Next, `nothing: DeploymentConflict: Deployment "foreign" exists and is not owned by Foo "conflict"`) && slices.Equal(differing(e), []string{"its owner"})
	})

	foos.Create(t, full, "denied", 1)
	v.waitExplained(foos.Controller, full, "denied", "the denial is explained", func(e debug.Explanation) bool {
		return strings.HasPrefix(e.Next, `create Deployment "denied" in `) && strings.Contains(e.Next, "it failed: ") && strings.Contains(e.Next, "exceeded quota: none") &&
			slices.Equal(differing(e), []string{"Deployment"}) && len(e.Delayed)+len(e.Running)+len(e.Waiting) > 0 &&
			slices.ContainsFunc(e.Syncs, func(s reconcile.Outcome) bool { return wrote(s, "create deployments.apps: denied") })
	})

	v.waitExplained(foos.Controller, ns, "unknown", "an unknown object", func(e debug.Explanation) bool {
		return !e.Found && e.Next == fmt.Sprintf("nothing: the cache has no Foo %q in namespace %q", "unknown", ns) && len(e.Syncs) == 0
	})

	tighten := foos.loosen(t, ns)
	foos.storeBad(t, ns, "bad")
	tighten()
	v.waitExplained(foos.Controller, ns, "bad", "an undecodable object", func(e debug.Explanation) bool {
		return e.Found && len(e.Facts) == 0 && strings.Contains(e.Next, "the object cannot be decoded")
	})
	v.waitExplained(aggregator, ns, "bad", "the aggregator ignores it", func(e debug.Explanation) bool {
		return e.Found && e.Next == "Foo: nothing: it cannot be decoded"
	})

	rs := icecreams.createServed(t, ns, "scoops")
	createPod(t, ns, "scoops-1", "node-1", icecreams.labels("scoops"), controlledBy(rs))
	v.waitExplained(icecreams.Controller, ns, "scoops", "its placement is recorded", func(e debug.Explanation) bool {
		return slices.ContainsFunc(e.Facts, func(f controller.Fact) bool {
			return f.Name == "recorded placements" && f.Wanted == "1" && f.Actual == "1"
		})
	})
	v.waitExplained(aggregator, ns, "scoops", "its Pod summary is explained", func(e debug.Explanation) bool {
		return e.Next == "Icecream: nothing: its status has the summary of its Pods" && e.Facts[0].Wanted == "1/1 ready on node-1"
	})
}

func TestStatusListsStoppedControllers(t *testing.T) {
	ownCluster(t)
	ns := newNamespace(t)
	foos.Create(t, ns, "a", 1)
	icecreams.uninstall(t)
	stop := startAnotherDaemon(t)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	v := newViewer(t, startDaemon(t, "--controllers=*,-foo-controller"))

	// states returns the controllers of a report by name.
	states := func(r debug.Report) map[string]debug.Controller {
		all := map[string]debug.Controller{}
		for _, c := range r.Controllers {
			all[c.Name] = c
		}
		return all
	}
	var r debug.Report
	text := v.page("", &r)
	if r.Leading || r.Process == "" || strings.Contains(r.Leader, r.Process) || !strings.Contains(r.Leader, " leads since ") || !strings.Contains(text, "\nLeader:  "+r.Leader+"\n") {
		t.Errorf("a standby reports the leader %q, leading %t:\n%s", r.Leader, r.Leading, text)
	}
	if all := states(r); all[foos.Controller].State != "Disabled" || all[icecreams.Controller].State != "Standby" {
		t.Errorf("status of a standby:\n%s", text)
	}
	var e debug.Explanation
	v.page("/foo-controller/"+ns+"/a", &e)
	if e.State != "Disabled" || e.Next != "nothing: foo-controller is disabled in this process" {
		t.Errorf("explanation of a disabled controller: %+v", e)
	}
	v.page("/"+aggregator+"/"+ns+"/a", &e)
	if e.State != "Standby" || e.Reason != r.Leader || e.Found { // it reads no Foos while their controller is disabled
		t.Errorf("explanation of a standby: %+v", e)
	}

	stop()
	clustertest.WaitUntil(t, "the other process leads and waits for an API", func(context.Context) error {
		var r debug.Report
		text := v.page("", &r)
		all := states(r)
		waiting, aggregating := all[icecreams.Controller], all[aggregator]
		unserved := slices.ContainsFunc(r.Resources, func(x debug.Resource) bool { return x.Name == icecreams.CRD() && !x.Served && x.Reason != "" })
		if !r.Leading || waiting.State != "WaitingForAPI" || !strings.Contains(waiting.Reason, icecreams.CRD()) || aggregating.State != "WaitingForAPI" || !unserved {
			return errors.New(text)
		}
		return nil
	})
}

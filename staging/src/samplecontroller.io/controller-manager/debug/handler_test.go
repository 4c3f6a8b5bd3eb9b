// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

func turns(total int, first ...reconcile.Entry) reconcile.Entries {
	return reconcile.Entries{Total: total, First: append([]reconcile.Entry{}, first...)}
}

// source has one busy and one waiting controller.
type source struct{ limit int }

func (s *source) Report(limit int) Report {
	s.limit = limit
	return Report{
		Program: "foo-manager", Version: "v1.2.3", Process: "host_uid", Time: now, Leader: "this process, host_uid, leads since 2026-01-02T03:00:00Z", Leading: true,
		Controllers: []Controller{
			{
				Name: "bar-controller", State: "WaitingForAPI", Since: before(5 * time.Minute), Reason: "bars.example.com are not served",
				Queues: []reconcile.Progress{{
					Queue: "bar-controller", Running: turns(0), Waiting: turns(0), Delayed: turns(0), Failures: []reconcile.Outcome{},
					Recent: []reconcile.Outcome{},
				}},
			},
			{
				Name: "foo-controller", State: "Running", Since: before(2 * time.Hour),
				Queues: []reconcile.Progress{{
					Queue:   "foo-controller",
					Running: turns(1, reconcile.Entry{Key: "default/a", Trigger: "foos changed", Time: before(12 * time.Millisecond)}),
					Waiting: turns(20, reconcile.Entry{Key: "default/b", Trigger: "deployments changed", Time: before(3 * time.Second)}),
					Delayed: turns(1, reconcile.Entry{Key: "default/c", Trigger: "retry", Time: now.Add(90 * time.Second), Retries: 14, Error: "creating Deployment \"c\": \x1b[31mno\nway"}),
					Failing: 1, LastSuccess: before(time.Second),
					Failures: []reconcile.Outcome{{Key: "default/c", Trigger: "retry", Began: before(time.Minute),
						Duration: metav1.Duration{Duration: 5 * time.Millisecond}, Result: "error", Error: "creating Deployment \"c\": no way",
						Writes: []reconcile.Write{{Verb: "create", Resource: "deployments.apps", Result: "failed"}}}},
					Recent: []reconcile.Outcome{{Key: "default/d", Trigger: "foos added", Began: before(time.Second),
						Duration: metav1.Duration{Duration: 7 * time.Millisecond}, Result: "success",
						Writes: []reconcile.Write{{Verb: "create", Resource: "deployments.apps", Result: "written"}, {Verb: "patch", Resource: "foos/status", Result: "written"}}}},
				}},
			},
		},
		Resources: []Resource{
			{Name: "bars.example.com", Since: before(5 * time.Minute), Reason: "not served"},
			{Name: "foos.example.com", Served: true, Since: before(2 * time.Hour), Objects: 23, LastSign: before(4 * time.Second)},
		},
	}
}

func (*source) Resolve(given string) (string, error) {
	switch given {
	case "foo", "foo-controller":
		return "foo-controller", nil
	case "bar-controller":
		return given, nil
	default:
		return "", fmt.Errorf("%q is not a known controller (known: bar-controller, foo, foo-controller)", given)
	}
}

func (s *source) Explain(name string, key cache.ObjectName) (Explanation, error) {
	if name != "foo-controller" {
		return Explanation{}, ErrNoExplanation
	}
	e := Explanation{Controller: name, Object: key.String(), State: "Running", Time: now}
	if key.Name == "s" {
		e.State, e.Reason = "Standby", "another leads"
	}
	if key.Name != "c" {
		e.Next = "nothing: the cache has no such Foo"
		return e, nil
	}
	e.Explanation = controller.Explanation{Found: true, Facts: []controller.Fact{
		controller.NewFact("Deployment", "c", ""),
		{Name: "its replicas", Wanted: "(left to others)", Actual: "3"},
	}, Next: "create Deployment \"c\""}
	e.Delayed = s.Report(1).Controllers[1].Queues[0].Delayed.First
	e.Syncs = s.Report(1).Controllers[1].Queues[0].Failures
	return e, nil
}

func get(t *testing.T, s Source, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(s).ServeHTTP(w, request)
	return w
}

func TestTextPages(t *testing.T) {
	for path, want := range map[string]string{
		"/debug/controllers": `foo-manager v1.2.3
Leader: this process, host_uid, leads since 2026-01-02T03:00:00Z
Time: 2026-01-02T03:04:05Z
Process: host_uid

CONTROLLER      STATE          FOR   RUN  WAIT  DELAY  FAIL  LAST
bar-controller  WaitingForAPI  5m    0    0     0      0     -
    bars.example.com are not served
foo-controller  Running        120m  1    20    1      1     1s

RESOURCE          SERVED  FOR   OBJECTS  LAST SIGN
bars.example.com  no      5m    0        -
    not served
foos.example.com  yes     120m  23       4s ago

Queue foo-controller: 1 running, 20 waiting, 1 delayed
  QUEUED   OBJECT       TIME      TRIGGER
  running  default/a    for 12ms  foos changed
  waiting  default/b    for 3s    deployments changed
  waiting  and 19 more
  delayed  default/c    in 90s    retry
    failed 14 times: creating Deployment "c": [31mno way

Last failures of foo-controller:
  OBJECT     BEGAN    TOOK  TRIGGER  RESULT
  default/c  60s ago  5ms   retry    error
    create deployments.apps: failed
    creating Deployment "c": no way
`,
		"/debug/controllers/foo-controller": `foo-manager v1.2.3
Leader: this process, host_uid, leads since 2026-01-02T03:00:00Z
Time: 2026-01-02T03:04:05Z
Process: host_uid

foo-controller: Running for 120m

Queue foo-controller: 1 running, 20 waiting, 1 delayed
  QUEUED   OBJECT       TIME      TRIGGER
  running  default/a    for 12ms  foos changed
  waiting  default/b    for 3s    deployments changed
  waiting  and 19 more
  delayed  default/c    in 90s    retry
    failed 14 times: creating Deployment "c": [31mno way

Last failures of foo-controller:
  OBJECT     BEGAN    TOOK  TRIGGER  RESULT
  default/c  60s ago  5ms   retry    error
    create deployments.apps: failed
    creating Deployment "c": no way

Last syncs of foo-controller:
  OBJECT     BEGAN   TOOK  TRIGGER     RESULT
  default/d  1s ago  7ms   foos added  success
    create deployments.apps: written, patch foos/status: written
`,
		"/debug/controllers/foo-controller/default/c": `default/c: foo-controller is Running

              WANTED            ACTUAL
Deployment    c                 -       <- differs
its replicas  (left to others)  3

Next: create Deployment "c"

  QUEUED   OBJECT     TIME    TRIGGER
  delayed  default/c  in 90s  retry
    failed 14 times: creating Deployment "c": [31mno way

Last syncs:
  OBJECT     BEGAN    TOOK  TRIGGER  RESULT
  default/c  60s ago  5ms   retry    error
    create deployments.apps: failed
    creating Deployment "c": no way
`,
		"/debug/controllers/foo-controller/default/z": `default/z: foo-controller is Running

nothing: the cache has no such Foo
`,
		"/debug/controllers/foo-controller/default/s": `default/s: foo-controller is Standby: another leads

nothing: the cache has no such Foo
`,
	} {
		w := get(t, &source{}, path)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d, %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestReportShowsServedNamespace(t *testing.T) {
	var text strings.Builder
	PrintHead(&text, Report{Process: "host_uid", Namespace: "team-a", Leader: "nobody", Time: now})
	if want := "\nLeader: nobody\nTime: 2026-01-02T03:04:05Z\nServes: namespace team-a only\n"; !strings.Contains(text.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", text.String(), want)
	}
}

// JSON contains everything that the text does, because kubectl scm prints the text from JSON.
func TestJSONPages(t *testing.T) {
	s := &source{}
	for _, header := range [][]string{{"Accept", "application/json"}, nil} {
		path := Path
		if header == nil {
			path += "?format=json"
		}
		w := get(t, s, path, header...)
		var got Report
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %v\n%s", w.Header().Get("Content-Type"), err, w.Body)
		}
		if diff := cmp.Diff(s.Report(1), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	w := get(t, s, Path+"/foo-controller/default/c?format=json")
	var got Explanation
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want, _ := s.Explain("foo-controller", cache.NewObjectName("default", "c"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

func TestFieldNamesOfQueues(t *testing.T) {
	text, err := json.Marshal((&source{}).Report(1).Controllers[1].Queues[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"foo-controller",` +
		`"running":{"total":1,"first":[{"key":"default/a","trigger":"foos changed","time":"2026-01-02T03:04:04.988Z"}]},` +
		`"waiting":{"total":20,"first":[{"key":"default/b","trigger":"deployments changed","time":"2026-01-02T03:04:02Z"}]},` +
		`"delayed":{"total":1,"first":[{"key":"default/c","trigger":"retry","time":"2026-01-02T03:05:35Z","retries":14,"error":"creating Deployment \"c\": \u001b[31mno\nway"}]},` +
		`"failing":1,"syncs":0,"failed":0,"lastSuccess":"2026-01-02T03:04:04Z",` +
		`"failures":[{"key":"default/c","trigger":"retry","began":"2026-01-02T03:03:05Z","duration":"5ms","result":"error","error":"creating Deployment \"c\": no way",` +
		`"writes":[{"verb":"create","resource":"deployments.apps","result":"failed"}]}],` +
		`"recent":[{"key":"default/d","trigger":"foos added","began":"2026-01-02T03:04:04Z","duration":"7ms","result":"success",` +
		`"writes":[{"verb":"create","resource":"deployments.apps","result":"written"},{"verb":"patch","resource":"foos/status","result":"written"}]}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestListsAreBounded(t *testing.T) {
	for query, want := range map[string]int{"": 10, "?limit=1": 1, "?limit=200": 200, "?limit=0": 0, "?limit=201": 0, "?limit=x": 0, "?limit=-1": 0} {
		s := &source{}
		w := get(t, s, Path+query)
		if want == 0 {
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "must be a number from 1 to 200") {
				t.Errorf("%q: %d %s, want 400 with the valid values", query, w.Code, w.Body)
			}
			continue
		}
		if w.Code != http.StatusOK || s.limit != want {
			t.Errorf("%q: %d, limit %d, want %d", query, w.Code, s.limit, want)
		}
	}
}

func TestAliases(t *testing.T) {
	for _, below := range []string{"", "/default/c"} {
		name, alias := get(t, &source{}, Path+"/foo-controller"+below), get(t, &source{}, Path+"/foo"+below)
		if alias.Code != http.StatusOK {
			t.Errorf("foo%s: %d, want 200", below, alias.Code)
		}
		if diff := cmp.Diff(name.Body.String(), alias.Body.String()); diff != "" {
			t.Errorf("foo%s (-name +alias):\n%s", below, diff)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/debug/controllers/baz":                      "\"baz\" is not a known controller (known: bar-controller, foo, foo-controller)\n",
		"/debug/controllers/baz/default/a":            "\"baz\" is not a known controller (known: bar-controller, foo, foo-controller)\n",
		"/debug/controllers/bar-controller/default/a": "bar-controller: the controller does not explain single objects",
		"/debug/controllers/foo-controller/default":   "Not found, use /debug/controllers[/<controller>[/<namespace>/<object>]]",
		"/debug/controllers/a/b/c/d":                  "Not found, use /debug/controllers",
	} {
		if w := get(t, &source{}, path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 404 and %q", path, w.Code, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	Handler(&source{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", w.Code)
	}
}

// FuzzHandler requests any path by any method.
func FuzzHandler(f *testing.F) {
	for _, path := range []string{"", "/foo-controller", "/foo-controller/default/c", "/foo-controller/default/s", "//", "/../", "/a\x00b", "/foo-controller/default/c/"} {
		for _, query := range []string{"", "limit=1", "limit=99999999999999999999", "format=json&format=x", ";", "%"} {
			f.Add(http.MethodGet, path, query, "application/json")
		}
	}
	f.Add(http.MethodHead, "", "", "*/*")
	f.Add("\x00", "/foo-controller", "limit=200", "")
	f.Fuzz(func(t *testing.T, method, path, query, accept string) {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Method, request.URL.Path, request.URL.RawQuery = method, Path+path, query
		request.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		Handler(&source{}).ServeHTTP(w, request)
		if w.Code >= 500 || w.Code == http.StatusOK && method != http.MethodGet {
			t.Errorf("%s %q?%s: %d", method, path, query, w.Code)
		}
		// Errors quote the request, but add little to it.
		if most := 10_000 + 10*len(path+query); w.Body.Len() > most {
			t.Errorf("%q?%s: a response of %d bytes", path, query, w.Body.Len())
		}
		if body := w.Body.String(); strings.Contains(body, "\x1b") || strings.Contains(w.Header().Get("Content-Type"), "html") {
			t.Errorf("%q?%s: a response that a terminal or a browser would interpret: %q", path, query, body)
		}
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var scaled = Change{
	Controller: "foo-controller", For: "ns/foo", Verb: "patch", Resource: "deployments.apps", Namespace: "ns", Name: "web",
	Before: "spec:\n  a: \x1b[2J\n  replicas: 3\n", After: "spec:\n  a: \x1b[2J\n  replicas: 1\n",
}

// TestText prints a plan with and without colors.
func TestText(t *testing.T) {
	r := Report{
		Account: "jane",
		Changes: []Change{scaled, {
			Controller: "vault-controller", For: "ns/a", Verb: VerbFinalize, Resource: "vaults.example.com", Namespace: "ns",
			Name: "a", Finalizer: "example.com/vault",
		}},
		NotPlanned: []string{"own-controller"}, PausedObjects: 2,
		Unknown: []Problem{{"foo-controller", "ns/foo", "create deployments.apps ns/b", "webhook \"w\" does not\nsupport dry run"}},
		Errors:  []Problem{{Controller: "bar-controller", Message: "no API serves bars"}},
	}
	const want = `patch deployments.apps ns/web by foo-controller for ns/foo
--- deployments.apps ns/web
+++ deployments.apps ns/web
@@ -1,3 +1,3 @@
 spec:
   a: ?[2J
-  replicas: 3
+  replicas: 1

finalize vaults.example.com ns/a by vault-controller for ns/a: would run the finalizer example.com/vault

Not planned: own-controller, which has no queue of objects.
Not planned: 2 paused objects.
Unknown: foo-controller for ns/foo: create deployments.apps ns/b: webhook "w" does not support dry run
Error: bar-controller: no API serves bars
Planned as jane.
2 objects would change: 0 created, 1 patched, 0 deleted, 1 finalized; statuses that follow from these are not predicted; 1 unknown; 1 error.
`
	var plain, colored strings.Builder
	if err := errors.Join(r.WriteText(&plain, false), r.WriteText(&colored, true)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, plain.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	for _, line := range []string{"\x1b[31m-  replicas: 3\x1b[0m\n", "\x1b[32m+  replicas: 1\x1b[0m\n"} {
		if !strings.Contains(colored.String(), line) {
			t.Errorf("the colored text lacks %q:\n%q", line, colored.String())
		}
	}
}

func TestJSON(t *testing.T) {
	const want = `{
  "changes": [],
  "followingStatuses": 0,
  "notPlanned": [],
  "pausedObjects": 0,
  "unknown": [],
  "errors": []
}
`
	var got strings.Builder
	if err := new(Report).WriteJSON(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// TestDifferenceMustLast has a sync that wants a write again and again, fails, and does not want it any more.
func TestDifferenceMustLast(t *testing.T) {
	r, id, now := NewShadow(), syncID{"foo-controller", "foo-controller", "ns/foo"}, time.Now()
	update := func(after time.Duration, failed bool, changes ...Change) time.Duration {
		return r.shadow.update(id, changes, func(Change) bool { return failed }, now.Add(after))
	}
	want := func(what string, n int) {
		t.Helper()
		total, first := r.Differences(10)
		if total != n || r.shadow.counts[series{"foo-controller", "deployments.apps"}] != n {
			t.Errorf("%s: differences %v, counts %v, want %d", what, first, r.shadow.counts, n)
		}
	}
	if again := update(0, false, scaled); again != Lasting {
		t.Errorf("a sync that wants a write is called again after %v, want %v", again, Lasting)
	}
	want("at first", 0)
	update(Lasting-time.Second, false, scaled)
	want("too early", 0)
	update(Lasting, false, scaled)
	want("later", 1)
	if _, first := r.Differences(1); !first[0].Since.Equal(now) {
		t.Errorf("since %v, want %v", first[0].Since, now)
	}
	update(Lasting, true)
	want("after a failure", 1)
	if again := update(Lasting, false); again != 0 {
		t.Errorf("a sync that wants nothing is called again after %v", again)
	}
	want("in the end", 0)
	update(2*Lasting, false, scaled)
	want("again", 0)
}

// TestShadowOfRefusedWrite has a sync whose only write the API server refuses: because it is a dry run, or to the
// leader, too. A status may say so.
func TestShadowOfRefusedWrite(t *testing.T) {
	const webhook, forbidden = "400 webhook w " + noDryRun, "403 Forbidden"
	for _, tc := range []struct {
		resource, status    string
		hasStatus, isBefore bool // whether the status is compared, and before the write
		want                bool
	}{
		{"foos/status.example.com", webhook, false, false, true},
		{"foos/status.example.com", forbidden, false, false, true},
		{"deployments.apps", webhook, false, false, true},
		{"deployments.apps", webhook, true, false, true},
		{"deployments.apps", forbidden, false, false, true},
		{"deployments.apps", forbidden, true, true, true},
		{"deployments.apps", forbidden, true, false, false},
	} {
		r := NewShadow()
		ctx, end := r.Begin(t.Context(), "foo-controller", "foo-controller", "ns/foo")
		if tc.hasStatus && tc.isBefore {
			ComparedStatus(ctx)
		}
		ctx.Value(callKey{}).(*call).refuse(Change{Verb: "patch", Resource: tc.resource}, nil, tc.status)
		if tc.hasStatus && !tc.isBefore {
			ComparedStatus(ctx)
		}
		again := end(false, errors.New("denied"))
		if (again == Lasting) != tc.want || (len(r.shadow.bySync) == 1) != tc.want {
			t.Errorf("%+v: the sync is called again after %v, and the shadow wants %v", tc, again, r.shadow.bySync)
		}
	}
}

// TestMask masks a Secret that kubectl has applied.
func TestMask(t *testing.T) {
	secret := func(value string) object {
		return object{
			"metadata": map[string]any{"annotations": map[string]any{
				"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": `{"data":{"key":"` + value + `"}}`,
			}},
			"data": map[string]any{"key": value, "same": "c2VjcmV0"},
		}
	}
	masked := func(value string) object {
		return object{
			"metadata": map[string]any{"annotations": map[string]any{"note": "kept"}},
			"data":     map[string]any{"key": value, "same": "***"},
		}
	}
	before, after := secret("b25l"), secret("dHdv")
	mask(before, after)
	if diff := cmp.Diff([]object{masked("*** (before)"), masked("*** (after)")}, []object{before, after}); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
	created := secret("b25l")
	mask(nil, created)
	if text := created.yaml(); strings.Contains(text, "b25l") {
		t.Errorf("a created Secret shows its value:\n%s", text)
	}
}

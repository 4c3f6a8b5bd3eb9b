// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

func TestAges(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	for age, want := range map[time.Duration]string{
		0: "0 s ago", 59 * time.Second: "59 s ago", time.Minute: "1 min ago", time.Hour: "1 h ago", 47 * time.Hour: "47 h ago", 48 * time.Hour: "2 d ago",
		-90 * time.Second: "in 1 min",
	} {
		if got := string(withAges([]byte(timeElement(now.Add(-age), 0)), now)); !strings.HasSuffix(got, ">"+want+"</time>") {
			t.Errorf("an age of %v is %s, want %s", age, got, want)
		}
	}
	r := reading[int]{Read: now, Interval: 2 * time.Second}
	for age, old := range map[time.Duration]bool{6 * time.Second: false, 7 * time.Second: true} {
		f := r.Fresh()
		if got := string(withAges([]byte(timeElement(f.Read, f.Limit)), now.Add(age))); strings.Contains(got, ", old<") != old {
			t.Errorf("after %v it says %s", age, got)
		}
	}
}

func TestFilters(t *testing.T) {
	f := newFake()
	for i := range 60 {
		f.objects = append(f.objects, stalled(fmt.Sprintf("a%02d", i), time.Now().Add(-time.Duration(i)*time.Minute)))
	}
	f.objects = append(f.objects, cluster.Object{Kind: "Icecream", Namespace: "shop", Name: "vanilla",
		Condition: "Reconciling", Reason: "Progressing", Message: "waits", Paused: "Paused by somebody"})
	s := read(t, f)
	for path, want := range map[string]string{
		"objects":                            "62 of 62",
		"objects?state=broken":               "61 of 62",
		"objects?state=paused":               "1 of 62",
		"objects?kind=icecream":              "<strong>Paused by somebody</strong>",
		"objects?kind=foo&reason=Available":  "1 of 62",
		"objects?q=shop/a1":                  "10 of 62",
		"objects?q=waits":                    "1 of 62",
		"objects?q=nothing":                  "0 of 62",
		"objects?state=broken&from=50":       "From 51 to 61 of 61",
		"objects?from=100000":                "From 62 to 62 of 62",
		"objects?from=-1":                    "From 1 to 50 of 62",
		"objects?reason=WriteDenied&from=50": `from=0&amp;kind=&amp;q=&amp;reason=WriteDenied">Previous</a>`,
	} {
		if body := pageOf(t, s, path); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in\n%s", path, want, body)
		}
	}
	// Those that are not Ready come first, the longest first.
	body := pageOf(t, s, "objects?kind=foo")
	if first, second := strings.Index(body, "Foo shop/a59"), strings.Index(body, "Foo shop/a58"); first < 0 || second < first {
		t.Errorf("the objects are not in order:\n%s", body)
	}
}

func TestObjectPage(t *testing.T) {
	f := newFake()
	f.objects = append(f.objects, stalled("a", time.Now()))
	f.events = []cluster.Event{{Type: "Warning", Reason: "Denied", Message: "no", Count: 3, Last: time.Now()}}
	s := read(t, f)
	s.d.replica.set(f)
	body := pageOf(t, s, "object/foo/shop/a")
	for _, want := range []string{"<strong class=\"bad\">Stalled</strong>, WriteDenied", "<th scope=\"row\">replicas</th><td>1</td><td>0</td><td><strong class=\"bad\">differs",
		"<strong>Next:</strong> nothing", "because of: retry. It failed 7 times in a row: denied", "<td>Denied</td>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	// Without an answer of the daemon, the object and its Events stay.
	s.d.replica.set(nil)
	body = pageOf(t, s, "object/foo/shop/a")
	for _, want := range []string{"Not readable:</strong> there is no connection to the daemon", "WriteDenied", "<td>Denied</td>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if body := pageOf(t, s, "object/foo/shop/none"); !strings.Contains(body, "There is no such object") {
		t.Errorf("of a missing object:\n%s", body)
	}
}

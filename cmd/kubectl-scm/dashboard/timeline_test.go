// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

func TestTerms(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 10, minute, 0, 0, time.UTC) }
	began := func(minute int, process string) cluster.Handover {
		return cluster.Handover{Time: at(minute), Process: process, What: became}
	}
	ended := func(minute int, process string) cluster.Handover {
		return cluster.Handover{Time: at(minute), Process: process, What: stopped}
	}
	for name, test := range map[string]struct {
		handovers []cluster.Handover
		lead      cluster.Lead
		want      string
	}{
		"none":           {want: ""},
		"only the Lease": {lead: cluster.Lead{Holder: "a_1", Since: at(5)}, want: "a 5-"},
		"handover": {
			handovers: []cluster.Handover{ended(10, "a_1"), began(11, "b_2")},
			lead:      cluster.Lead{Holder: "b_2", Since: at(11)}, want: "a ?-10 b 11-",
		},
		"crash": {
			handovers: []cluster.Handover{began(2, "a_1"), began(11, "b_2")},
			lead:      cluster.Lead{Holder: "b_2", Since: at(11)}, want: "a 2-11 b 11-",
		},
		"missing Event": {
			handovers: []cluster.Handover{began(2, "a_1")},
			lead:      cluster.Lead{Holder: "b_2", Since: at(11)}, want: "a 2-11 b 11-",
		},
		"repeated Event": {
			handovers: []cluster.Handover{began(2, "a_1"), began(3, "a_1")},
			lead:      cluster.Lead{Holder: "a_1", Since: at(2)}, want: "a 2-",
		},
		"nobody any more": {handovers: []cluster.Handover{began(2, "a_1"), ended(3, "a_1")}, want: "a 2-3"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, term := range terms(test.handovers, test.lead, at(0)) {
				text := term.Pod + " "
				if text += "?"; !term.Open {
					text = fmt.Sprintf("%s %d", term.Pod, term.Begin.Minute())
				}
				if text += "-"; !term.End.IsZero() {
					text += fmt.Sprint(term.End.Minute())
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("the terms are %q, want %q", got, test.want)
			}
		})
	}
}

func TestTimelineSource(t *testing.T) {
	f := newFake()
	if body := pageOf(t, read(t, f), ""); !strings.Contains(body, "from the Events of the Lease") || !strings.Contains(body, "pod-b before ") {
		t.Errorf("with Events:\n%s", body)
	}
	f.lead.Duration = 0 // so that it has expired
	if body := pageOf(t, read(t, f), ""); strings.Contains(body, "to now") {
		t.Errorf("after the Lease has expired:\n%s", body)
	}
	f.failures["handovers"] = errors.New("403: may not list events in ns")
	if body := pageOf(t, read(t, f), ""); !strings.Contains(body, "observed since this page was opened, because the Events of the Lease cannot be read: 403: may not list events in ns") {
		t.Errorf("without Events:\n%s", body)
	}
}

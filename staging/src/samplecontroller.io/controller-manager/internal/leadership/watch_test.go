// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func TestBadWatchEventReopensWatch(t *testing.T) {
	expired := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}
	for name, tc := range map[string]struct {
		event  watch.EventType
		object runtime.Object
		logged string
	}{
		"error":                {watch.Error, expired, "too old resource version"},
		"not a Lease":          {watch.Modified, &coordinationv1.LeaseList{}, "watch event contains a *v1.LeaseList, want a Lease"},
		"not a Lease, deleted": {watch.Deleted, &coordinationv1.LeaseList{}, "watch event contains a *v1.LeaseList, want a Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a := newCandidate(t, server, "a")
				var work campaigns
				a.run(work.lead)
				first := a.client.watching
				first.Action(tc.event, tc.object) // and the watch stays open
				pass(watchPause)
				if got := a.client.count("watch"); got != 2 || !first.IsStopped() {
					t.Errorf("%d watches, first stopped: %t; want the first to be stopped and another", got, first.IsStopped())
				}
				if log := a.log.String(); !strings.Contains(log, tc.logged) {
					t.Errorf("the log does not contain %q:\n%s", tc.logged, log)
				}
				if len(work.terms) != 1 || work.last().Valid() != nil {
					t.Errorf("%d terms, want one valid term", len(work.terms))
				}
				a.end(t)
			})
		})
	}
}

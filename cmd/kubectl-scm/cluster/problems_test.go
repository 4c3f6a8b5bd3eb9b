// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"
)

func TestProblems(t *testing.T) {
	now := time.Now()
	good := &Lead{Holder: "a_1", Pod: "a", Renewed: now, Duration: 15 * time.Second}
	report := debug.Report{
		Controllers: []debug.Controller{
			{Name: "foo-controller", State: "Degraded", Reason: "see the table"},
			{Name: "icecream-controller", State: "Running", Unhealthy: "an object has waited for 6m"},
			{Name: "status-aggregator-controller", State: "Running", Queues: []reconcile.Progress{{Failing: 2}, {Failing: 1}}},
		},
		Resources: []debug.Resource{{Name: "pods", Served: true}, {Name: "foos.samplecontroller.k8s.io"}},
	}
	for name, test := range map[string]struct {
		lead   *Lead
		pods   []Pod
		report debug.Report
		want   []string
	}{
		"none":         {good, []Pod{{Name: "a", Ready: true}}, debug.Report{}, []string{}},
		"no holder":    {&Lead{}, nil, debug.Report{}, []string{"nobody leads: no replica can get the Lease, or none runs"}},
		"expired":      {&Lead{Holder: "a_1", Pod: "a", Renewed: now.Add(-10 * time.Minute)}, nil, debug.Report{}, []string{"nobody leads: a has not renewed the Lease for 10m"}},
		"not readable": {nil, nil, debug.Report{}, []string{}},
		"replicas": {good, []Pod{{Name: "a", Ready: true}, {Name: "b", Problem: "ImagePullBackOff"}, {Name: "c"}}, debug.Report{},
			[]string{"2 of 3 replicas are not ready: b (ImagePullBackOff), c (not ready)"}},
		"controllers": {good, nil, report, []string{"foo-controller is Degraded", "icecream-controller is unhealthy: an object has waited for 6m",
			"status-aggregator-controller fails for 3 objects", "foos.samplecontroller.k8s.io: not served"}},
		"configuration": {good, nil, debug.Report{ConfigRefused: "flags.v: has no value"}, []string{"the configuration file is refused: flags.v: has no value"}},
	} {
		if diff := cmp.Diff(test.want, Problems(test.lead, test.pods, test.report)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

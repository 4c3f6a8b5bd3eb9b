// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// shared has the fields of every status in their stored form.
const shared = `
	"observedGeneration": 2,
	"replicas": 5,
	"readyReplicas": 4,
	"availableReplicas": 3,
	"selector": "app=nginx",
	"unavailableSince": "2026-11-27T21:00:00Z",
	"conditions": [{
		"type": "Ready", "status": "False", "observedGeneration": 2, "lastTransitionTime": "2026-11-27T21:00:00Z",
		"reason": "Progressing", "message": "scaling"
	}],
	"pods": {
		"observedGeneration": 2,
		"summary": "1/1 ready on node-1",
		"total": 1, "pending": 0, "running": 1, "ready": 1, "succeeded": 0, "failed": 0, "unknown": 0, "terminating": 0,
		"restarts": 7,
		"nodes": [{"name": "node-1", "pods": 1, "ready": 1}], "nodesOmitted": 0,
		"problems": [{"pod": "a", "reason": "CrashLoopBackOff", "message": "back-off"}]
	}`

// TestStoredStatuses decodes statuses with all fields and encodes them again. The fields must
// stay where stored objects have them, however the Go types are composed.
func TestStoredStatuses(t *testing.T) {
	for stored, status := range map[string]any{
		"{" + shared + "}": &samplev1alpha1.FooStatus{},
		"{" + shared + `,
			"placements": [{"podUID": "u", "pod": "a", "node": "node-1", "time": "2026-11-27T21:00:00Z"}],
			"placementsOmitted": 6
		}`: &icecreamv1alpha1.IcecreamStatus{},
	} {
		t.Run(reflect.TypeOf(status).Elem().Name(), func(t *testing.T) {
			decoder := json.NewDecoder(strings.NewReader(stored))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(status); err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			if err := json.Compact(&want, []byte(stored)); err != nil {
				t.Fatal(err)
			}
			if string(encoded) != want.String() {
				t.Errorf("encoded as %s\nwant %s", encoded, want.String())
			}
		})
	}
}

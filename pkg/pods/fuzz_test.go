// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// FuzzFacts gets the facts about arbitrary Pods that a client can decode.
func FuzzFacts(f *testing.F) {
	for _, pod := range []string{
		`{"apiVersion":"v1","kind":"Pod"}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1-x","namespace":"default","uid":"0e2b5a2c-7d3c-4b0e-9a52-1b1d9f6f2a10","resourceVersion":"7","ownerReferences":[{"kind":"ReplicaSet","name":"web-1","uid":"00000000-0000-0000-0000-000000000000","controller":true}]},"spec":{"nodeName":"node-1"},"status":{"phase":"Running","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Ready","status":"True"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"\u0000","resourceVersion":"-1","creationTimestamp":"0001-01-01T00:00:00Z"},"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":null}]}}`,
		`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Failed","initContainerStatuses":[{"restartCount":2147483647,"state":{"terminated":{"exitCode":1}}}],"containerStatuses":[{"restartCount":2147483647,"state":{"waiting":{"reason":"\ud800","message":"é"}}}]}}`,
	} {
		f.Add([]byte(pod))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		pod, ok := decoded.(*corev1.Pod)
		if err != nil || !ok {
			return
		}
		before := pod.DeepCopy()
		r := factsOf(pod)
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Errorf("FactsOf changed the Pod (-before +after):\n%s", diff)
		}
		if again := factsOf(pod); r != again {
			t.Errorf("the facts %+v and %+v about the same Pod differ", r, again)
		}
		var owner types.UID
		if o := metav1.GetControllerOf(pod); o != nil {
			owner = o.UID
		}
		if r.UID() != pod.UID || r.Controller().UID != owner || r.Node() != pod.Spec.NodeName {
			t.Errorf("facts %+v, want Pod %q", r, pod.UID)
		}
		if r.Restarts() < 0 {
			t.Errorf("%d restarts", r.Restarts())
		}
		// JSON supports no year after 9999, and the zero time is null.
		if placed := r.Placed(); pod.Spec.NodeName != "" &&
			(placed.UTC().Year() > 9999 || placed.Before(time.Time{}) || placed.IsZero() != pod.CreationTimestamp.IsZero() &&
				placed.IsZero()) {
			t.Errorf("placed at %v", placed)
		}
		if p := r.Problem(); utf8.RuneCountInString(p.Reason) > maxReason || utf8.RuneCountInString(p.Message) > maxMessage ||
			!utf8.ValidString(p.Reason+p.Message) ||
			(p.Severity == None) != (p == Problem{}) {
			t.Errorf("problem %+v", p)
		}
	})
}

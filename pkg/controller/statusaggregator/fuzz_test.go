// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"slices"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// FuzzSummarize summarizes arbitrary Pods.
func FuzzSummarize(f *testing.F) {
	for _, pods := range []string{
		``,
		`{"apiVersion":"v1","kind":"PodList","items":[]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","uid":"a"},"spec":{"nodeName":"node-1"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}},{"metadata":{"name":"b","uid":"b"},"spec":{"nodeName":"node-2"},"status":{"phase":"Failed"}}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","ownerReferences":[{"uid":"uid-web-1","controller":false}]}},{"metadata":{"name":"b","namespace":"other"}},{"metadata":{"name":"c","ownerReferences":[{"kind":"ReplicaSet","name":"web-1","uid":"forged","controller":true}]}}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"status":{"phase":"?","containerStatuses":[{"restartCount":2147483647,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}}},{"restartCount":2147483647},{"restartCount":-5}]}}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"node-1"},"status":{"phase":"Running"}},{"metadata":{"name":"b","deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Succeeded"}}]}`,
	} {
		f.Add([]byte(pods), uint8(1))
	}
	f.Add([]byte(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}]}`), uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, copies uint8) {
		var records []*pods.Record
		for _, pod := range podsFor(data, copies) {
			records = append(records, controller.NewRecord[pods.Facts](pod))
		}
		s := summarize(records)
		check(t, s, records)
		slices.Reverse(records)
		if again := summarize(records); !same(&s, &again) {
			t.Errorf("summary of the same Pods in another order: %+v, want %+v", again, s)
		}
	})
}

// podsFor decodes a list of Pods as a client does, and copies each.
func podsFor(data []byte, copies uint8) (all []*corev1.Pod) {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	list, ok := decoded.(*corev1.PodList)
	if err != nil || !ok {
		return nil
	}
	known := map[string]bool{}
	for i := range list.Items {
		for n := range max(int(copies), 1) {
			pod := list.Items[i].DeepCopy()
			if n > 0 {
				suffix := string(rune('a'+n%26)) + string(rune('a'+n/26))
				pod.Name += suffix
				if pod.Spec.NodeName != "" {
					pod.Spec.NodeName += suffix
				}
			}
			if name := pod.Namespace + "/" + pod.Name; !known[name] {
				known[name] = true
				all = append(all, pod)
			}
		}
	}
	return all
}

// check checks a summary against its schema and against the Pods.
func check(t *testing.T, s workloadv1alpha1.PodSummary, records []*pods.Record) {
	t.Helper()
	if s.Pending+s.Running+s.Unknown != s.Total || int(s.Total+s.Succeeded+s.Failed+s.Terminating) != len(records) ||
		s.Ready > s.Total {
		t.Errorf("of %d Pods: %+v", len(records), s)
	}
	nodes := map[string]int32{}
	for _, record := range records {
		if pod := record.Facts(); pod.Node() != "" && pod.Active() {
			nodes[pod.Node()]++
		}
	}
	if len(s.Nodes) > maxNodes || len(s.Nodes)+int(s.NodesOmitted) != len(nodes) {
		t.Errorf("%d nodes and %d more, want %d in all", len(s.Nodes), s.NodesOmitted, len(nodes))
	}
	for _, node := range s.Nodes {
		if node.Pods != nodes[node.Name] || node.Ready > node.Pods || utf8.RuneCountInString(node.Name) > 253 {
			t.Errorf("node %+v, want %d Pods", node, nodes[node.Name])
		}
	}
	if s.Restarts < 0 || s.Nodes == nil || s.Problems == nil || len(s.Problems) > maxProblems || s.Summary == "" ||
		utf8.RuneCountInString(s.Summary) > 2048 {
		t.Errorf("the status does not fit its schema: %+v", s)
	}
	for _, p := range s.Problems {
		if p.Reason == "" || utf8.RuneCountInString(p.Reason) > 64 || utf8.RuneCountInString(p.Message) > 256 ||
			!utf8.ValidString(p.Reason+p.Message) {
			t.Errorf("problem %+v", p)
		}
	}
}

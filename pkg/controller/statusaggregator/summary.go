// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// Limits of the summary in its schema, and limits of the line in Summary.
const (
	maxNodes       = 100
	maxProblems    = 5
	maxNodesNamed  = 3
	maxReasonNamed = 3
)

// summarize returns the summary of the Pods. It does not depend on their order.
func summarize(records []*pods.Record) workloadv1alpha1.PodSummary {
	// Lists are never nil: they would be written as null, which the CRDs do not allow.
	s := workloadv1alpha1.PodSummary{Nodes: []workloadv1alpha1.NodeSummary{}, Problems: []workloadv1alpha1.PodProblem{}}
	nodes := map[string]int{} // index of each node in s.Nodes
	var troubled []*pods.Record
	for _, record := range records {
		pod := record.Facts()
		s.Restarts += int64(pod.Restarts())
		if pod.Problem().Severity > pods.None {
			troubled = append(troubled, record)
		}
		if pod.Terminating() {
			s.Terminating++
			continue
		}
		*phaseOf(&s, pod.Phase())++
		if !pod.Active() {
			continue
		}
		s.Total++
		if pod.Ready() {
			s.Ready++
		}
		if name := pod.Node(); name != "" {
			at, known := nodes[name]
			if !known {
				at = len(s.Nodes)
				nodes[name] = at
				s.Nodes = append(s.Nodes, workloadv1alpha1.NodeSummary{Name: name})
			}
			node := &s.Nodes[at]
			node.Pods++
			if pod.Ready() {
				node.Ready++
			}
		}
	}
	slices.SortFunc(s.Nodes, func(a, b workloadv1alpha1.NodeSummary) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(troubled, func(a, b *pods.Record) int {
		return cmp.Or(cmp.Compare(b.Facts().Problem().Severity, a.Facts().Problem().Severity),
			cmp.Compare(a.GetName(), b.GetName()))
	})
	s.Summary = summaryLine(s, troubled)
	if excess := len(s.Nodes) - maxNodes; excess > 0 {
		s.Nodes, s.NodesOmitted = s.Nodes[:maxNodes], int32(excess)
	}
	for _, pod := range troubled[:min(len(troubled), maxProblems)] {
		p := pod.Facts().Problem()
		s.Problems = append(s.Problems, workloadv1alpha1.PodProblem{Pod: pod.GetName(), Reason: p.Reason, Message: p.Message})
	}
	return s
}

// same reports whether two summaries are equal. It does not use reflection, which would
// allocate three times per node.
func same(a, b *workloadv1alpha1.PodSummary) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ObservedGeneration == b.ObservedGeneration && a.Summary == b.Summary && a.Total == b.Total &&
		a.Pending == b.Pending && a.Running == b.Running && a.Ready == b.Ready &&
		a.Succeeded == b.Succeeded && a.Failed == b.Failed && a.Unknown == b.Unknown &&
		a.Terminating == b.Terminating && a.Restarts == b.Restarts &&
		slices.Equal(a.Nodes, b.Nodes) && a.NodesOmitted == b.NodesOmitted && slices.Equal(a.Problems, b.Problems)
}

// phaseOf returns the counter of a phase.
func phaseOf(s *workloadv1alpha1.PodSummary, phase corev1.PodPhase) *int32 {
	switch phase {
	case corev1.PodPending:
		return &s.Pending
	case corev1.PodRunning:
		return &s.Running
	case corev1.PodSucceeded:
		return &s.Succeeded
	case corev1.PodFailed:
		return &s.Failed
	default:
		return &s.Unknown
	}
}

// summaryLine returns the human-readable line: "2/3 ready on node-1 (2), node-2; 1
// CrashLoopBackOff; 1 terminating". Terminating Pods come last, because they are usually no
// problem.
func summaryLine(s workloadv1alpha1.PodSummary, troubled []*pods.Record) string {
	parts := []string{readiness(s)}
	if reasons := reasonsOf(troubled); reasons != "" {
		parts = append(parts, reasons)
	}
	if s.Terminating > 0 {
		parts = append(parts, fmt.Sprintf("%d terminating", s.Terminating))
	}
	return strings.Join(parts, "; ")
}

// readiness returns how many Pods are ready, and on which nodes they are.
func readiness(s workloadv1alpha1.PodSummary) string {
	if s.Total == 0 {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d ready", s.Ready, s.Total)
	var nodes []string
	for _, node := range s.Nodes[:min(len(s.Nodes), maxNodesNamed)] {
		if node.Pods > 1 {
			node.Name += fmt.Sprintf(" (%d)", node.Pods)
		}
		nodes = append(nodes, node.Name)
	}
	if len(nodes) > 0 {
		b.WriteString(" on " + strings.Join(nodes, ", "))
	}
	if more := len(s.Nodes) - len(nodes); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// reasonsOf returns the reasons of the problems. The Pods are sorted by severity, so the worst
// reasons come first.
func reasonsOf(troubled []*pods.Record) string {
	var reasons []string
	counts := map[string]int{}
	for _, pod := range troubled {
		reason := pod.Facts().Problem().Reason
		if counts[reason] == 0 {
			reasons = append(reasons, reason)
		}
		counts[reason]++
	}
	reasons = reasons[:min(len(reasons), maxReasonNamed)]
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", counts[reason], reason)
	}
	return strings.Join(reasons, ", ")
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import "k8s.io/component-base/metrics"

// Result is the result of a write.
type Result string

// The results of a write.
const (
	// ResultWritten: done by the API server, or nothing had to be done.
	ResultWritten Result = "written"
	// ResultConflict: rejected by the API server because the object is not in the expected
	// state (409).
	ResultConflict Result = "conflict"
	// ResultRefused: not sent, because the process does not lead, or the controller is switched off.
	ResultRefused Result = "refused"
	// ResultDenied: denied by the API server because of a missing permission or by admission
	// (403).
	ResultDenied Result = "denied"
	// ResultFailed: everything else.
	ResultFailed Result = "failed"
)

// Results returns all results.
func Results() []Result {
	return []Result{ResultWritten, ResultConflict, ResultRefused, ResultDenied, ResultFailed}
}

// Metrics counts the writes of all controllers. Series carry no object names, so their
// number is constant. A nil Metrics counts nothing.
type Metrics struct {
	total, skipped, noOps *metrics.CounterVec
}

// NewMetrics creates the metrics <namespace>_writes_total{controller,verb,resource,result},
// <namespace>_writes_skipped_total{controller,resource} and
// <namespace>_writes_noop_total{controller,resource} and registers them with register, usually
// legacyregistry.MustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.Registerable)) *Metrics {
	m := &Metrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "writes_total",
			Help:           "Number of writes by controller, verb, resource and result (written, conflict, refused, denied, failed). Refused writes are not sent to the API server.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "verb", "resource", "result"}),
		skipped: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "writes_skipped_total",
			Help:           "Number of writes skipped because the object was already in the desired state, by controller and resource.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "resource"}),
		noOps: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "writes_noop_total",
			Help:           "Number of patches that the API server accepted but that changed nothing, by controller and resource. They are part of writes_total. The log names the fields.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "resource"}),
	}
	register(m.total, m.skipped, m.noOps)
	return m
}

// Write is a kind of write: an RBAC verb and a resource such as deployments.apps or
// foos/status.samplecontroller.k8s.io.
type Write struct {
	Verb, Resource string
}

// Prepare creates the series of a controller at zero before its first write.
func (m *Metrics) Prepare(controller string, writes ...Write) {
	for _, write := range writes {
		for _, result := range Results() {
			m.total.WithLabelValues(controller, write.Verb, write.Resource, string(result))
		}
		m.skipped.WithLabelValues(controller, write.Resource)
		m.noOps.WithLabelValues(controller, write.Resource)
	}
}

func (m *Metrics) count(controller, verb, resource string, result Result) {
	if m != nil {
		m.total.WithLabelValues(controller, verb, resource, string(result)).Inc()
	}
}

func (m *Metrics) noOp(controller, resource string) {
	if m != nil {
		m.noOps.WithLabelValues(controller, resource).Inc()
	}
}

func (m *Metrics) skip(controller, resource string) {
	if m != nil {
		m.skipped.WithLabelValues(controller, resource).Inc()
	}
}

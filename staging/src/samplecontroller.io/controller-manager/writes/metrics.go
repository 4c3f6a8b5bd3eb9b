// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import "k8s.io/component-base/metrics"

// Result is what became of a write.
type Result string

// The results of a write.
const (
	// ResultWritten: the API server has carried it out, if there was anything to do.
	ResultWritten Result = "written"
	// ResultConflict: refused by the API server, because the object is not, or no
	// longer, as the writer thought (409).
	ResultConflict Result = "conflict"
	// ResultRefused: not sent, because the process does not lead.
	ResultRefused Result = "refused"
	// ResultDenied: denied by the API server, for a missing permission or by
	// admission (403).
	ResultDenied Result = "denied"
	// ResultFailed: all else.
	ResultFailed Result = "failed"
)

// Results returns all results, for whoever prepares a series for each.
func Results() []Result {
	return []Result{ResultWritten, ResultConflict, ResultRefused, ResultDenied, ResultFailed}
}

// Metrics counts the writes of all controllers. Series carry no object names, so their
// number is constant. A nil Metrics counts nothing.
type Metrics struct {
	total, skipped *metrics.CounterVec
}

// NewMetrics makes the metrics <namespace>_writes_total{controller,verb,resource,result}
// and <namespace>_writes_skipped_total{controller,resource} and registers them with
// register, usually legacyregistry.MustRegister. Call it once in a process.
func NewMetrics(namespace string, register func(...metrics.Registerable)) *Metrics {
	m := &Metrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "writes_total",
			Help:           "Number of writes by controller, verb, resource and result (written, conflict, refused, denied, failed). Refused is not sent to the API server.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "verb", "resource", "result"}),
		skipped: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "writes_skipped_total",
			Help:           "Number of writes that were not needed, because all was as it should be, by controller and resource.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "resource"}),
	}
	register(m.total, m.skipped)
	return m
}

// Write is a kind of write: a verb of RBAC and a resource such as deployments.apps or
// foos/status.samplecontroller.k8s.io.
type Write struct {
	Verb, Resource string
}

// Prepare makes the series of a controller exist, at zero, before it first writes.
func (m *Metrics) Prepare(controller string, writes ...Write) {
	for _, write := range writes {
		for _, result := range Results() {
			m.total.WithLabelValues(controller, write.Verb, write.Resource, string(result))
		}
		m.skipped.WithLabelValues(controller, write.Resource)
	}
}

func (m *Metrics) count(controller, verb, resource string, result Result) {
	if m != nil {
		m.total.WithLabelValues(controller, verb, resource, string(result)).Inc()
	}
}

func (m *Metrics) skip(controller, resource string) {
	if m != nil {
		m.skipped.WithLabelValues(controller, resource).Inc()
	}
}

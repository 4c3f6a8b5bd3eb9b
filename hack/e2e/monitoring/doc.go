// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads manifests/monitoring for tests, as prometheus-operator and
// Grafana do: it makes a configuration of Prometheus of the ServiceMonitor, and evaluates
// the queries of the dashboard. In the directory alerts are promtool's tests of the alerts,
// which TestAlerts runs.
package monitoring

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads manifests/monitoring for tests, like prometheus-operator and
// Grafana: it converts the ServiceMonitor to a Prometheus configuration, and evaluates the
// queries of the dashboard. The directory alerts has promtool's tests of the alerts, which
// TestAlerts runs.
package monitoring

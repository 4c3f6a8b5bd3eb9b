// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/metrics"
)

// metricsFlags maps the fields of the metrics options to their flags.
var metricsFlags = map[string]string{
	"metrics":                             "--allow-metric-labels, --allow-metric-labels-manifest",
	"metrics.showHiddenMetricsForVersion": "--show-hidden-metrics-for-version",
	"metrics.disabledMetrics":             "--disabled-metrics",
	"metrics.allowListMapping":            "--allow-metric-labels",
	"metrics.allowListMappingManifest":    "--allow-metric-labels-manifest",
}

// validateMetrics returns the library's validation errors with the flag instead of the field.
func (o *Options) validateMetrics() []error {
	var errs []error
	for _, err := range o.Metrics.Validate() {
		if invalid := (*field.Error)(nil); errors.As(err, &invalid) && metricsFlags[invalid.Field] != "" {
			err = fmt.Errorf("%s: %s", metricsFlags[invalid.Field], invalid.ErrorBody())
		}
		errs = append(errs, err)
	}
	return errs
}

// applyMetrics applies the metrics flags that are set. The library would log an error if no
// list of allowed labels is set.
func (o *Options) applyMetrics() {
	if o.Metrics.AllowListMapping != nil || o.Metrics.AllowListMappingManifest != "" {
		o.Metrics.Apply()
		return
	}
	metrics.SetDisabledMetrics(o.Metrics.DisabledMetrics)
	if o.Metrics.ShowHiddenMetricsForVersion != "" {
		metrics.SetShowHidden()
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/spf13/pflag"
)

// StatusAggregatorOptions are those of status-aggregator-controller.
type StatusAggregatorOptions struct {
	// Interval is how long after a write of an object the next one may come.
	Interval time.Duration
}

func newStatusAggregatorOptions() *StatusAggregatorOptions {
	return &StatusAggregatorOptions{Interval: time.Second}
}

func (o *StatusAggregatorOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.Interval, "status-aggregation-interval", o.Interval,
		"The least time between two writes of what the Pods of one object say. The first change is written at once, the last one always. 0 means to write each.")
}

func (o *StatusAggregatorOptions) validate() []error {
	return between("status-aggregation-interval", o.Interval, 0)
}

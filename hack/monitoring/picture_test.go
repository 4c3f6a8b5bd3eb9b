// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"testing"

	"github.com/prometheus/common/model"
)

func TestAxesAreRound(t *testing.T) {
	for _, tc := range []struct {
		top  float64
		unit string
		want float64
		last string
	}{
		{0, "short", 1, "1"},
		{1, "short", 1, "1"},
		{3, "short", 4, "4"},
		{11, "ops", 20, "20/s"},
		{0.0021, "s", 0.004, "4 ms"},
		{7.5, "s", 8, "8 s"},
		{61 << 20, "bytes", 80 << 20, "80 MiB"},
		{460 << 20, "bytes", 600 << 20, "600 MiB"},
	} {
		line := Line{Points: []model.SamplePair{{Value: 0}, {Value: model.SampleValue(tc.top)}}}
		got := ceiling([]Line{line}, tc.unit)
		if diff := got - tc.want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("the axis of %v %s ends at %v, want %v", tc.top, tc.unit, got, tc.want)
		}
		if last := format(got, tc.unit); last != tc.last {
			t.Errorf("%v in %s is spelt %q, want %q", got, tc.unit, last, tc.last)
		}
	}
}

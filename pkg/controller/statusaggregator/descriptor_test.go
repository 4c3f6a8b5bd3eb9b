// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"slices"
	"testing"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
)

func TestKindsOfDisabledControllersAreNotRead(t *testing.T) {
	const foos, icecreams = "foos", "icecreams"
	for name, test := range map[string]struct{ enabled, want []string }{
		"all":       {[]string{kinds.FooController, kinds.IcecreamController, ControllerName}, []string{foos, icecreams}},
		"foos":      {[]string{kinds.FooController, ControllerName}, []string{foos}},
		"icecreams": {[]string{kinds.IcecreamController, ControllerName}, []string{icecreams}},
		"alone":     {[]string{ControllerName}, []string{foos, icecreams}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, rule := range Descriptor().With(test.enabled).Rules {
				for _, resource := range []string{foos, icecreams} {
					if slices.Contains(rule.Resources, resource) {
						got = append(got, resource)
					}
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("reads %v, want %v", got, test.want)
			}
		})
	}
}

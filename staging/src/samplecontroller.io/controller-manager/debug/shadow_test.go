// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"strings"
	"testing"
	"time"
)

// TestReportShowsShadow prints what a shadow would do differently.
func TestReportShowsShadow(t *testing.T) {
	var text strings.Builder
	PrintReport(&text, Report{Time: now, Shadow: &Shadow{Total: 2, First: []Difference{{
		Controller: "foo-controller", Object: "ns/foo", Verb: "patch", Resource: "deployments.apps", Name: "ns/web",
		Since: before(time.Minute), Fields: []string{"spec.replicas", "spec.paused"},
	}}}})
	const want = `
Writes that this shadow wants, and that the leader does not make: 2
  OBJECT      WRITE                   FOR  CONTROLLER
  ns/web      patch deployments.apps  60s  foo-controller
    spec.replicas, spec.paused
  and 1 more
`
	if !strings.Contains(text.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", text.String(), want)
	}
}

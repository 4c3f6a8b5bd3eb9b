// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestFoosOnly disables icecream-controller where the daemon cannot read Icecreams. All that it
// does for Foos works, and nothing complains.
func TestFoosOnly(t *testing.T) {
	ownCluster(t)
	for _, test := range []struct {
		name    string
		deprive func(t *testing.T)
	}{
		{"without the rights", func(t *testing.T) { revoke(t, icecreams.toRead()...) }},
		{"without the CRD", icecreams.uninstall},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := newNamespace(t)
			test.deprive(t)
			server, log := startLogged(t, "--controllers=*,-icecream-controller")
			foos.Create(t, ns, "a", 1)
			clustertest.WaitUntil(t, "the Foo has a summary of its Pods", func(ctx context.Context) error {
				foo, err := foos.Get(ctx, ns, "a")
				if err == nil && foo.Status.Pods == nil {
					err = fmt.Errorf("the status is %+v", foo.Status)
				}
				return err
			})
			caller := token(t, newNamespace(t), clusterRole(t, everything))
			for _, path := range []string{"/readyz", "/healthz"} {
				if code, body, err := server.Get(t.Context(), path, caller); err != nil || code != 200 {
					t.Errorf("%s answers %d %s, %v", path, code, body, err)
				}
			}
			_, metrics, err := server.Get(t.Context(), "/metrics", caller)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(metrics) {
				if strings.Contains(line, "_resource_served{") && strings.Contains(line, icecreams.CRD()) {
					t.Errorf("the metrics have %s", line)
				}
			}
			if lines := log.about(icecreams.CRD()); len(lines) > 0 {
				t.Errorf("logged: %q", lines)
			}
		})
	}
}

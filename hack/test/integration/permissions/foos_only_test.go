// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestFoosOnly disables icecream-controller where the daemon cannot read Icecreams. All that it
// does for Foos works, and nothing complains.
func TestFoosOnly(t *testing.T) {
	framework.OwnAPIServer(t)
	for _, test := range []struct {
		name    string
		deprive func(t *testing.T)
	}{
		{"without the rights", func(t *testing.T) {
			framework.RevokeFromDaemon(t, framework.Icecreams.May("list", ""), framework.Icecreams.May("watch", ""))
		}},
		{"without the CRD", framework.Icecreams.UninstallCRD},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := framework.NewNamespace(t)
			test.deprive(t)
			server := framework.StartUnready(t, "--controllers=*,-icecream-controller")
			framework.Foos.Create(t, ns, "a", 1)
			clustertest.WaitUntil(t, "the Foo has a summary of its Pods", func(ctx context.Context) error {
				foo, err := framework.Foos.Get(ctx, ns, "a")
				if err == nil && foo.Status.Pods == nil {
					err = fmt.Errorf("the status is %+v", foo.Status)
				}
				return err
			})
			for _, path := range []string{"/readyz", "/healthz"} {
				server.GetPage(path, "", http.StatusOK)
			}
			for line := range strings.Lines(server.GetPage("/metrics", server.Admin(), http.StatusOK)) {
				if strings.Contains(line, "_resource_served{") && strings.Contains(line, framework.Icecreams.CRD()) {
					t.Errorf("the metrics have %s", line)
				}
			}
			if lines := server.LogAbout(framework.Icecreams.CRD()); len(lines) > 0 {
				t.Errorf("logged: %q", lines)
			}
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestReplicaWithoutLeaseNeverBecomesReady starts daemons with a wrong namespace of the Lease, as
// after a mistake in a rollout.
func TestReplicaWithoutLeaseNeverBecomesReady(t *testing.T) {
	framework.OwnAPIServer(t)
	for name, tc := range map[string]struct {
		kubeconfig func() (string, error)
		namespace  string
		want       string
	}{
		"permission missing": {func() (string, error) {
			return framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName, framework.DaemonName)
		}, metav1.NamespaceSystem, "not permitted in namespace kube-system; grant the permission, or set another --leader-elect-resource-namespace"},
		"namespace missing": {func() (string, error) { return framework.Cluster().Kubeconfig, nil },
			"nope", "namespace nope does not exist; create it, or set another --leader-elect-resource-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig, err := tc.kubeconfig()
			if err != nil {
				t.Fatal(err)
			}
			server := framework.StartUnready(t, "--kubeconfig="+kubeconfig, "--leader-elect-resource-namespace="+tc.namespace)
			server.GetPage("/readyz/lease", server.Admin(), http.StatusInternalServerError, tc.want)
			server.GetPage("/readyz", "", http.StatusInternalServerError)
			if got := server.Log.String(); !strings.Contains(got, tc.want) {
				t.Errorf("the log does not contain %q:\n%s", tc.want, got)
			}
			server.GetPage("/statusz", server.Admin(), http.StatusOK, tc.want)
			if got := server.Value("sample_controller_manager_leadership_lease_refused"); got != 1 {
				t.Errorf("the metric is %v, want 1", got)
			}
		})
	}
}

// wantHealth checks that the probes of a daemon that has lost its term pass for longer than
// client-go's watchdog tolerates: 20 s after the Lease has expired.
func wantHealth(t *testing.T, server *framework.Replica, probes ...string) {
	t.Helper()
	const tolerance = 20 * time.Second
	for began := time.Now(); time.Since(began) < framework.LeaseDuration+tolerance+5*time.Second; time.Sleep(time.Second) {
		for _, path := range probes {
			if code, body, err := server.GetAs(t.Context(), "", path); err != nil || code != http.StatusOK {
				t.Fatalf("%s of a replica that lost its term answers %d %s %v after %v", path, code, body, err, time.Since(began).Round(time.Second))
			}
		}
	}
}

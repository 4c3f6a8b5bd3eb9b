// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestReplicaWithoutLeaseNeverBecomesReady starts daemons with a wrong namespace of the Lease, as
// after a mistake in a rollout.
func TestReplicaWithoutLeaseNeverBecomesReady(t *testing.T) {
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

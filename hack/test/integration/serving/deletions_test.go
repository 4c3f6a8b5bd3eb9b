// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestAllowDeletions lets a controller of the leader delete without a limit. That this ends a stop is tested in
// managertest: the daemon deletes nothing.
func TestAllowDeletions(t *testing.T) {
	leader := framework.StartDaemon(t, "--max-deletions-per-minute=5")
	holder := framework.WaitLeader(t, "")
	standby := framework.StartDaemon(t, "--max-deletions-per-minute=5")
	if got := leader.Value(`sample_controller_manager_deletions_stopped{controller="foo-controller"}`); got != 0 {
		t.Errorf("the metric is %v, want 0", got)
	}
	const path = "/debug/deletions/"
	nobody := framework.TokenWith(t, framework.NewNamespace(t))
	operator := framework.TokenWith(t, framework.NewNamespace(t), framework.DaemonName+"-allow-deletions")
	leader.GetPage(path+"foo-controller", operator, http.StatusForbidden) // it may only put
	for _, test := range []struct {
		to                  *framework.Replica
		method, token, path string
		code                int
		want                string
	}{
		{leader, http.MethodPut, "", "foo-controller", http.StatusUnauthorized, ""},
		{leader, http.MethodPut, nobody, "foo-controller", http.StatusForbidden, ""},
		{leader, http.MethodPut, operator, "foo-controller", http.StatusOK, "foo-controller may delete without a limit for 10m0s, until 20"},
		{leader, http.MethodPut, operator, "foo", http.StatusOK, "foo-controller may delete without a limit"},
		{leader, http.MethodPut, operator, "bar", http.StatusNotFound, `"bar"`},
		{leader, http.MethodPut, operator, "", http.StatusNotFound, ""},
		{leader, http.MethodGet, leader.Admin(), "foo-controller", http.StatusMethodNotAllowed, "Only PUT is allowed"},
		{standby, http.MethodPut, operator, "foo-controller", http.StatusConflict, "this process does not lead, ask the leader: " + holder},
	} {
		code, body, err := test.to.DoAs(t.Context(), test.method, test.token, path+test.path, "")
		if err != nil || code != test.code || !strings.Contains(body, test.want) {
			t.Errorf("%s %s answers %d %q %v, want %d %q", test.method, test.path, code, body, err, test.code, test.want)
		}
	}
	for server, want := range map[string]string{leader.URL: "foo-controller may delete without a limit", standby.URL: "409 Conflict: this process does not lead"} {
		stdout, stderr, _ := framework.RunPlugin(t, "allow-deletions", "foo-controller", "--server="+server,
			"--insecure-skip-tls-verify", "--kubeconfig="+framework.Cluster().Kubeconfig)
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("kubectl scm allow-deletions prints %q %q, want %q", stdout, stderr, want)
		}
	}
}

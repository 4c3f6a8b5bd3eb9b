// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/plan"
)

// TestPlanExitCodes checks the errors that decide the exit code.
func TestPlanExitCodes(t *testing.T) {
	problem := []plan.Problem{{Message: "no"}}
	for name, tc := range map[string]struct {
		report plan.Report
		want   error
	}{
		"nothing":              {plan.Report{}, nil},
		"a change":             {plan.Report{Changes: []plan.Change{{}}}, errWouldChange},
		"an error":             {plan.Report{Changes: []plan.Change{{}}, Errors: problem}, errLogged},
		"an unknown write":     {plan.Report{Unknown: problem}, errLogged},
		"an unplanned loop":    {plan.Report{NotPlanned: []string{"a"}}, nil},
		"statuses that follow": {plan.Report{FollowingStatuses: 1}, nil},
	} {
		for _, format := range []string{"text", "json"} {
			var out strings.Builder
			if err := printPlan(&out, &tc.report, format); !errors.Is(err, tc.want) || out.Len() == 0 {
				t.Errorf("%s as %s: got %v and %q, want %v", name, format, err, out.String(), tc.want)
			}
		}
	}
}

// TestPlanAccount checks as whom a plan is made.
func TestPlanAccount(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"kubeconfig":           {[]string{"--kubeconfig=x"}, "system:serviceaccount:test-manager:test-manager"},
		"namespace":            {[]string{"--kubeconfig=x", "--leader-elect-resource-namespace=ns"}, "system:serviceaccount:ns:test-manager"},
		"kube-system":          {[]string{"--kubeconfig=x", "--leader-elect-resource-namespace=kube-system"}, "system:serviceaccount:kube-system:test-manager"},
		"master":               {[]string{"--master=https://x"}, "system:serviceaccount:test-manager:test-manager"},
		"credentials of a Pod": {nil, ""},
	} {
		p := program(made)
		o := p.options()
		command := newCommand(p, o)
		if err := command.ParseFlags(tc.args); err != nil {
			t.Fatal(err)
		}
		if got := p.account(o, command.Flags().Changed("leader-elect-resource-namespace")); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestPlanErrors checks wrong flags, and an API server that denies the impersonation.
func TestPlanErrors(t *testing.T) {
	resetLog(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: "Forbidden", Code: 403,
			Message: `serviceaccounts "test-manager" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" as ` + r.Header.Get("Impersonate-User")}
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	file := func(namespace string) string {
		path := filepath.Join(t.TempDir(), "config.yaml")
		content := "apiVersion: config.samplecontroller.io/v1alpha1\nkind: ControllerManagerConfiguration\nflags:\n" +
			"  kubeconfig: " + kubeconfig(t) + "\n  master: " + server.URL + "\n  leader-elect-resource-namespace: " + namespace
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--config=" + path
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"format":        {[]string{"-o", "yaml"}, `invalid --output "yaml": must be text or json`},
		"timeout":       {[]string{"--timeout=0s"}, "invalid --timeout 0s: must be positive"},
		"impersonation": {[]string{"--kubeconfig=" + kubeconfig(t), "--master=" + server.URL}, `cannot impersonate resource "serviceaccounts" as system:serviceaccount:test-manager:test-manager; get the permission`},
		"by your own":   {[]string{"--kubeconfig=" + kubeconfig(t), "--master=" + server.URL}, `or plan with your own permissions by --as=""`},
		"file":          {[]string{file("team")}, `cannot impersonate resource "serviceaccounts" as system:serviceaccount:team:test-manager; get`},
		"kube-system":   {[]string{file("kube-system")}, `cannot impersonate resource "serviceaccounts" as system:serviceaccount:kube-system:test-manager; get`},
		"no server":     {[]string{"--kubeconfig=" + kubeconfig(t), "--master=http://127.0.0.1:1"}, "planning as system:serviceaccount:test-manager:test-manager: "},
	} {
		t.Run(name, func(t *testing.T) {
			command := NewCommand(program(made))
			command.SetArgs(append([]string{"plan"}, tc.args...))
			command.SetContext(t.Context())
			command.SilenceErrors = true
			if err := command.Execute(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got the error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestPlanLogsNothing logs like client-go: with the logger of a context, and without one.
func TestPlanLogsNothing(t *testing.T) {
	resetLog(t)
	var log strings.Builder
	klog.ClearLogger()
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	t.Cleanup(func() { klog.LogToStderr(true) })
	if err := configureLog(t.Context(), program(made).options()); err != nil {
		t.Fatal(err)
	}
	klog.FromContext(t.Context()).Error(nil, "an error")
	klog.InfoS("a trace")
	klog.Flush()
	if log.Len() > 0 {
		t.Errorf("logged %q", log.String())
	}
}

// TestShadowNeedsNoLease checks what a shadow needs.
func TestShadowNeedsNoLease(t *testing.T) {
	p := preflightProgram()
	o := p.options()
	command := newCommand(p, o)
	if err := command.ParseFlags([]string{"--kubeconfig=" + kubeconfig(t), "--shadow"}); err != nil {
		t.Fatal(err)
	}
	checks, err := p.preflight(t.Context(), o)
	if err != nil || checks.Lease != nil {
		t.Errorf("a shadow needs the Lease %v: %v", checks.Lease, err)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/fakeapi"
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

// TestPlanWithOwnPermissions plans as a user, for a program whose controllers write as ServiceAccounts of their own.
func TestPlanWithOwnPermissions(t *testing.T) {
	resetLog(t)
	api := &httputil.ReverseProxy{Transport: fakeapi.New(kubescheme.Scheme), Rewrite: func(*httputil.ProxyRequest) {},
		FlushInterval: -1} // for watches
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"jane"}}}`)
	}))
	defer server.Close()
	config := &restclient.Config{Host: server.URL}
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), owner, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	command := NewCommand(program(func(_ string, c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c)
		secrets := controller.Owns[*corev1.Secret](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			_, err := secrets.Ensure(ctx, r, r.Key().Name, func(*corev1.Secret) {})
			return err
		})
	}))
	var out strings.Builder
	command.SetOut(&out)
	command.SetArgs([]string{"plan", "--as=", "--use-service-account-credentials", "--kube-api-content-type=application/json",
		"--kubeconfig=" + kubeconfig(t), "--master=" + server.URL})
	command.SetContext(t.Context())
	command.SilenceErrors = true
	if err := command.Execute(); !errors.Is(err, errWouldChange) || !strings.Contains(out.String(), "create secrets default/a") {
		t.Errorf("got the error %v and the plan\n%s", err, out.String())
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

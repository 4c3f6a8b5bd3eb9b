// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/controller-manager/controller"
)

// preflightProgram returns a program whose two controllers share a rule.
func preflightProgram() Program {
	p := program(made)
	for i := range p.Controllers {
		p.Controllers[i].DisabledByDefault = false
		p.Controllers[i].Rules = []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}},
			{APIGroups: []string{"example.com"}, Resources: []string{p.Controllers[i].Aliases[0] + "s/status"}, Verbs: []string{"patch"}},
		}
	}
	return p
}

func TestNeeds(t *testing.T) {
	serving := []string{"create tokenreviews.authentication.k8s.io", `get configmaps "extension-apiserver-authentication" in namespace "kube-system"`,
		`list configmaps "extension-apiserver-authentication" in namespace "kube-system"`, `watch configmaps "extension-apiserver-authentication" in namespace "kube-system"`,
		"create subjectaccessreviews.authorization.k8s.io"}
	election := []string{`create leases.coordination.k8s.io in namespace "lease"`, `get leases.coordination.k8s.io "test-manager" in namespace "lease"`,
		`update leases.coordination.k8s.io "test-manager" in namespace "lease"`, `watch leases.coordination.k8s.io "test-manager" in namespace "lease"`}
	tests := map[string]struct {
		args []string
		want map[string][]string
	}{
		"all namespaces": {nil, map[string][]string{
			"controllers": {
				"list deployments.apps in all namespaces for bar-controller, foo-controller", "patch bars/status.example.com in all namespaces for bar-controller",
				"patch foos/status.example.com in all namespaces for foo-controller",
			},
			"leader election": election, "Events": {"create events in all namespaces", "patch events in all namespaces"}, "serving": serving,
		}},
		"one namespace and controller": {[]string{"--namespace=ns", "--controllers=foo"}, map[string][]string{
			"controllers":     {`list deployments.apps in namespace "ns" for foo-controller`, `patch foos/status.example.com in namespace "ns" for foo-controller`},
			"leader election": election, "serving": serving,
			"Events": {`create events in namespace "ns"`, `patch events in namespace "ns"`, `create events in namespace "lease"`, `patch events in namespace "lease"`},
		}},
		"no election and no server": {[]string{"--controllers=foo", "--leader-elect=false", "--secure-port=0"}, map[string][]string{
			"controllers": {"list deployments.apps in all namespaces for foo-controller", "patch foos/status.example.com in all namespaces for foo-controller"},
			"Events":      {"create events in all namespaces", "patch events in all namespaces"},
		}},
		"other credentials for callers": {[]string{"--controllers=foo", "--leader-elect=false", "--authentication-kubeconfig=" + kubeconfig(t)}, map[string][]string{
			"controllers": {"list deployments.apps in all namespaces for foo-controller", "patch foos/status.example.com in all namespaces for foo-controller"},
			"Events":      {"create events in all namespaces", "patch events in all namespaces"}, "serving": {"create subjectaccessreviews.authorization.k8s.io"},
		}},
		"no client certificates": {[]string{"--controllers=foo", "--leader-elect=false", "--authentication-skip-lookup"}, map[string][]string{
			"controllers": {"list deployments.apps in all namespaces for foo-controller", "patch foos/status.example.com in all namespaces for foo-controller"},
			"Events":      {"create events in all namespaces", "patch events in all namespaces"},
			"serving":     {"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := preflightProgram()
			o := p.options()
			command := newCommand(p, o)
			if err := command.ParseFlags(append([]string{"--kubeconfig=" + kubeconfig(t), "--leader-elect-resource-namespace=lease"}, tc.args...)); err != nil {
				t.Fatal(err)
			}
			checks, err := p.preflight(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, group := range checks.Permissions {
				for _, permission := range group.Permissions {
					text := permission.String()
					if permission.For != "" {
						text += " for " + permission.For
					}
					got[group.Name] = append(got[group.Name], text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("permissions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestControllersWithoutRules(t *testing.T) {
	p := preflightProgram()
	p.Controllers[0].Rules, p.Controllers[1].Rules = nil, []rbacv1.PolicyRule{}
	o := p.options()
	o.Client.Connection.Kubeconfig = kubeconfig(t)
	checks, err := p.preflight(t.Context(), o)
	if diff := cmp.Diff([]string{p.Controllers[0].Name}, checks.Undeclared); err != nil || diff != "" {
		t.Errorf("%v, controllers without Rules (-want +got):\n%s", err, diff)
	}
}

// TestPreflightErrors checks what preflight prints for wrong flags and without an API server.
func TestPreflightErrors(t *testing.T) {
	tests := map[string]struct {
		args   []string
		output string // on stdout
		err    string
	}{
		"no API server":                  {[]string{"--kubeconfig=" + kubeconfig(t), "--master=https://127.0.0.1:1"}, "API server   FAIL     https://127.0.0.1:1 cannot be used: ", errLogged.Error()},
		"unknown format":                 {[]string{"--output=yaml"}, "", `invalid --output "yaml": must be table or json`},
		"invalid flags":                  {[]string{"--leader-elect-renew-deadline=1h"}, "", "invalid flags (1):\n  --leader-elect-renew-deadline: 1h0m0s must be shorter"},
		"missing kubeconfig":             {[]string{"--kubeconfig=/absent"}, "", "--kubeconfig: stat /absent"},
		"missing certificate":            {[]string{"--kubeconfig=" + kubeconfig(t), "--tls-cert-file=/absent.crt", "--tls-private-key-file=/absent.key"}, "", "--tls-cert-file, --tls-private-key-file: open /absent.crt"},
		"missing client CA":              {[]string{"--kubeconfig=" + kubeconfig(t), "--client-ca-file=/absent"}, "", "--client-ca-file: open /absent"},
		"missing kubeconfig for callers": {[]string{"--kubeconfig=" + kubeconfig(t), "--authorization-kubeconfig=/absent"}, "", "--authorization-kubeconfig: stat /absent"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := program(made)
			command := newCommand(p, p.options())
			var out bytes.Buffer
			command.SetOut(&out)
			command.SilenceErrors = true
			command.SetArgs(append([]string{"preflight"}, tc.args...))
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if !strings.Contains(out.String(), tc.output) || tc.output == "" && out.Len() > 0 {
				t.Errorf("printed %q, want %q", out.String(), tc.output)
			}
		})
	}
}

// TestPreflightReportsControllerThatCannotBeMade checks that no check is made for a program
// that does not start.
func TestPreflightReportsControllerThatCannotBeMade(t *testing.T) {
	p := program(func(string, *controller.Context) (controller.Controller, error) {
		return nil, errors.New("no such index")
	})
	o := p.options()
	o.Client.Connection.Kubeconfig = kubeconfig(t)
	if _, err := p.preflight(t.Context(), o); err == nil || err.Error() != "building foo-controller: no such index" {
		t.Errorf("error %v", err)
	}
}

func made(name string, _ *controller.Context) (controller.Controller, error) {
	return &fake{name: name}, nil
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/controller-manager/controller"
)

// declaring returns a program whose controllers declare what they need; one also has a rule.
func declaring() Program {
	return Program{Name: "test-manager", Port: 10299, Controllers: []controller.Descriptor{
		{Name: "copy-controller", Workers: 1, New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c, controller.MayPatch())
			controller.Owns[*corev1.Secret](configMaps)
			return configMaps.Reconcile(doNothing[*corev1.ConfigMap])
		}},
		{
			Name: "pod-controller", Workers: 1,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}},
			New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
				return controller.For[*corev1.Pod](c).Reconcile(doNothing[*corev1.Pod])
			},
		},
	}}
}

// TestRoles compares the roles with files in testdata.
func TestRoles(t *testing.T) {
	for file, args := range map[string]string{
		"roles-all-namespaces.yaml": "",
		"roles-one-namespace.yaml":  "--namespace=team --controllers=copy-controller",
		"roles-accounts.yaml":       "--use-service-account-credentials --secure-port=0",
	} {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			p := declaring()
			command := newCommand(p, p.options())
			command.SetOut(&out)
			command.SetArgs(append([]string{"rbac", "--leader-elect-resource-namespace=ops"}, strings.Fields(args)...))
			if err := command.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("roles (-testdata/%s +got):\n%s", file, diff)
			}
		})
	}
}

// TestNeedsWithoutCluster asks for the permissions of the enabled controllers.
func TestNeedsWithoutCluster(t *testing.T) {
	needs, err := declaring().Needs(t.Context(), "--controllers=pod-controller")
	if err != nil || len(needs) != 1 || needs[0].Name != "pod-controller" {
		t.Fatalf("needs of %v, %v, want those of pod-controller", needs, err)
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
	if diff := cmp.Diff(want, needs[0].Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for _, args := range []string{"--no-flag", "--controllers=none-controller"} {
		if _, err := declaring().Needs(t.Context(), args); err == nil {
			t.Errorf("no error for %s", args)
		}
	}
}

// TestControllersCommand lists what controllers declare, also if one is disabled or cannot be built.
func TestControllersCommand(t *testing.T) {
	list := func(p Program) (out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		command := newCommand(p, p.options())
		command.SetOut(&stdout)
		command.SetErr(&stderr)
		command.SetArgs([]string{"controllers"})
		if err := command.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String()
	}
	p := declaring()
	p.Controllers[0].DisabledByDefault = true
	const want = `NAME              ALIASES   DEFAULT   WORKERS   RESOURCES
copy-controller             off       1         configmaps,secrets
pod-controller              on        1         pods
`
	if got, errs := list(p); got != want || errs != "" {
		t.Errorf("got\n%s%s\nwant\n%s", got, errs, want)
	}
	p.Controllers[0].New = func(context.Context, *controller.Context) (controller.Controller, error) {
		return nil, errors.New("no URL")
	}
	if got, errs := list(p); !strings.Contains(got, "copy-controller") || !strings.Contains(errs, "cannot be built with the default flags: building copy-controller: no URL") {
		t.Errorf("got\n%s%s\nwant all controllers and the error of the constructor", got, errs)
	}
}

func doNothing[T controller.Object](context.Context, *controller.Request[T]) error { return nil }

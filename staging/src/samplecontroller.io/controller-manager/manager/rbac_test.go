// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
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
			command := NewCommand(p, p.Options())
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

func doNothing[T controller.Object](context.Context, *controller.Request[T]) error { return nil }

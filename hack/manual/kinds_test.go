// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// TestEachControllerIsInReadme checks that the table at the top of README.md has each
// controller.
func TestEachControllerIsInReadme(t *testing.T) {
	text := read(t, "../../README.md")
	for _, d := range app.Program().Controllers {
		if !strings.Contains(text, "\n| `"+d.Name+"` |") {
			t.Errorf("README.md has no row for %s in the table of controllers", d.Name)
		}
	}
}

// TestEachKindIsComplete checks that each kind whose status a controller writes has a CRD,
// rights for users, an example and a status in kube-system, and a place in the cage if its
// controller writes Deployments.
func TestEachKindIsComplete(t *testing.T) {
	crds := read(t, "../../manifests/crds/kustomization.yaml")
	cage := read(t, "../../manifests/cluster/cage.yaml")
	examples := examplesOf(t)
	kinds := 0
	for _, d := range app.Program().Controllers {
		for _, rule := range d.Rules {
			resource, isStatus := strings.CutSuffix(rule.Resources[0], "/status")
			if !isStatus {
				continue
			}
			kinds++
			group := rule.APIGroups[0]
			if file := group + "_" + resource + ".yaml"; !strings.Contains(crds, "\n- "+file+"\n") {
				t.Errorf("%s: manifests/crds/kustomization.yaml does not list %s", d.Name, file)
			}
			for role, verb := range map[string]string{"sample-controller-manager-view": "get", "sample-controller-manager-edit": "create"} {
				if !grants(t, role, group, resource, verb) {
					t.Errorf("%s: the ClusterRole %s in manifests/cluster/users.yaml does not allow %s on %s of %s", d.Name, role, verb, resource, group)
				}
			}
			if writesDeployments(d) && !strings.Contains(cage, "o.apiVersion.startsWith('"+group+"/')") {
				t.Errorf("%s: manifests/cluster/cage.yaml does not let the daemon write Deployments of %s", d.Name, group)
			}
			if status := `"` + rule.Resources[0] + `"`; !strings.Contains(cage, status) {
				t.Errorf("%s: manifests/cluster/cage.yaml does not let the daemon write %s in kube-system", d.Name, status)
			}
			if !slices.Contains(examples, group) {
				t.Errorf("%s: manifests/examples has no object of the group %s: add one", d.Name, group)
			}
		}
	}
	if kinds < 2 {
		t.Errorf("%d kinds have a status that a controller writes, want at least 2", kinds)
	}
}

// writesDeployments returns whether a controller creates Deployments.
func writesDeployments(d controller.Descriptor) bool {
	return slices.ContainsFunc(d.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "deployments") && slices.Contains(rule.Verbs, "create")
	})
}

// grants reports whether a role for users allows a verb.
func grants(t *testing.T, role, group, resource, verb string) bool {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(read(t, "../../manifests/cluster/users.yaml")), 4096)
	for {
		var r rbacv1.ClusterRole
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return false
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Name == role && slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
		}) {
			return true
		}
	}
}

// examplesOf returns the API groups of the examples.
func examplesOf(t *testing.T) (groups []string) {
	t.Helper()
	files, err := filepath.Glob("../../manifests/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var o metav1.TypeMeta
		if err := utilyaml.Unmarshal([]byte(read(t, file)), &o); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		group, _, _ := strings.Cut(o.APIVersion, "/")
		groups = append(groups, group)
	}
	return groups
}

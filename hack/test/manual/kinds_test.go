// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// TestEachControllerIsInReadme checks that the table at the top of README.md has each
// controller.
func TestEachControllerIsInReadme(t *testing.T) {
	text := read(t, "../../../README.md")
	for _, d := range app.Program().Controllers {
		if !strings.Contains(text, "\n| `"+d.Name+"` |") {
			t.Errorf("README.md has no row for %s in the table of controllers", d.Name)
		}
	}
}

// kind is a kind whose status a controller writes.
type kind struct {
	controllers               []string
	group, plural, name       string
	hasScale, ownsDeployments bool
}

func (k kind) String() string { return k.name + " of " + strings.Join(k.controllers, " and ") }

// kinds returns all such kinds.
func kinds(t *testing.T) (all []*kind) {
	t.Helper()
	controllers, err := app.Program().Needs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range controllers {
		for _, rule := range d.Rules {
			plural, isStatus := strings.CutSuffix(rule.Resources[0], "/status")
			if !isStatus {
				continue
			}
			group := rule.APIGroups[0]
			i := slices.IndexFunc(all, func(k *kind) bool { return k.group == group && k.plural == plural })
			if i < 0 {
				i, all = len(all), append(all, &kind{group: group, plural: plural})
			}
			all[i].controllers = append(all[i].controllers, d.Name)
			all[i].ownsDeployments = all[i].ownsDeployments || writesDeployments(d)
		}
	}
	for _, k := range all {
		file := "../../../manifests/crds/" + k.group + "_" + k.plural + ".yaml"
		crd := decode[apiextensionsv1.CustomResourceDefinition](t, file)[0].Spec
		k.name = crd.Names.Kind
		k.hasScale = crd.Versions[0].Subresources.Scale != nil
	}
	if len(all) < 2 {
		t.Errorf("%d kinds have a status that a controller writes, want at least 2", len(all))
	}
	return all
}

// TestEachKindIsInstalled checks that each kind has a CRD that is installed, an example, and places in the
// cage, in the guard and in the series of kube-state-metrics if its controller writes Deployments.
func TestEachKindIsInstalled(t *testing.T) {
	crds := read(t, "../../../manifests/crds/kustomization.yaml")
	cage := read(t, "../../../manifests/cluster/policy.yaml")
	series := read(t, "../../../manifests/monitoring/kube-state-metrics.yaml")
	guard := policy(t, "../../../manifests/components/guard/policy.yaml", "sample-controller-manager-guard").ResourceRules
	inKubeSystem := policy(t, "../../../manifests/cluster/policy.yaml", "sample-controller-manager-cage-kube-system").
		ExcludeResourceRules
	examples := decode[metav1.TypeMeta](t, "../../../manifests/examples/*.yaml")
	for _, k := range kinds(t) {
		if file := k.group + "_" + k.plural + ".yaml"; !strings.Contains(crds, "\n- "+file+"\n") {
			t.Errorf("%s: manifests/crds/kustomization.yaml does not list %s", k, file)
		}
		if !slices.ContainsFunc(examples, k.isOf) {
			t.Errorf("%s: manifests/examples has no object of the kind: add one", k)
		}
		if !matches(inKubeSystem, k.group, k.plural+"/status", "UPDATE") {
			t.Errorf("%s: manifests/cluster/policy.yaml does not let the daemon write %s/status in kube-system", k, k.plural)
		}
		if !k.ownsDeployments {
			continue
		}
		owner := fmt.Sprintf("(o.kind == '%s' && o.apiVersion.startsWith('%s/'))", k.name, k.group)
		if !strings.Contains(cage, owner) {
			t.Errorf("%s: manifests/cluster/policy.yaml does not let the daemon write its Deployments: add %s to owned", k, owner)
		}
		for _, resource := range k.written() {
			if !matches(guard, k.group, resource, "CREATE", "UPDATE") {
				t.Errorf("%s: manifests/components/guard/policy.yaml does not match writes of %s", k, resource)
			}
		}
		if !regexp.MustCompile(`group: ` + k.group + `\n +version: \w+\n +kind: ` + k.name + `\n`).MatchString(series) {
			t.Errorf("%s: manifests/monitoring/kube-state-metrics.yaml has no series of the kind", k)
		}
	}
}

// TestUsersMayUseEachKind checks that viewers may read each kind, its status and its scale, that editors
// may write all but the status, and that neither role allows more.
func TestUsersMayUseEachKind(t *testing.T) {
	view, edit := sets.New[string](), sets.New[string]()
	for _, k := range kinds(t) {
		add(view, k.group, append(k.written(), k.plural+"/status"), "get", "list", "watch")
		add(edit, k.group, k.written(), "create", "delete", "deletecollection", "patch", "update")
	}
	want := map[string]sets.Set[string]{"sample-controller-manager-view": view, "sample-controller-manager-edit": edit}
	for _, role := range decode[rbacv1.ClusterRole](t, "../../../manifests/cluster/users.yaml") {
		got := sets.New[string]()
		for _, rule := range role.Rules {
			add(got, rule.APIGroups[0], rule.Resources, rule.Verbs...)
		}
		if diff := cmp.Diff(sets.List(want[role.Name]), sets.List(got)); diff != "" {
			t.Errorf("rights of %s in manifests/cluster/users.yaml (-want +got):\n%s", role.Name, diff)
		}
		delete(want, role.Name)
	}
	if len(want) > 0 {
		t.Errorf("manifests/cluster/users.yaml lacks %v", slices.Collect(maps.Keys(want)))
	}
}

// TestCommandsNameEachKind checks the commands in the manual that are about the objects of all kinds. A backup
// without one of them loses its objects.
func TestCommandsNameEachKind(t *testing.T) {
	command, found := regexp.MustCompile(`kubectl (?:get|delete) (foos,\S+).*`), 0
	all := kinds(t)
	for _, file := range pageFiles(t) {
		for _, match := range command.FindAllStringSubmatch(read(t, root+file), -1) {
			found++
			for _, k := range all {
				if !slices.Contains(strings.Split(match[1], ","), k.plural) {
					t.Errorf("%s: the command %q in %s leaves out %s", k, match[0], file, k.plural)
				}
			}
		}
	}
	for _, k := range all {
		if crd := " crd/" + k.plural + "." + k.group; !strings.Contains(read(t, root+"manifests/docs/upgrade.md"), crd) {
			t.Errorf("%s: the restore in manifests/docs/upgrade.md does not wait for%s", k, crd)
		}
	}
	if found < 5 {
		t.Errorf("%d commands found, want at least 5", found)
	}
}

// isOf reports whether an object is of the kind.
func (k kind) isOf(object metav1.TypeMeta) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: k.group, Kind: k.name}
}

// written returns the resources that users write.
func (k kind) written() []string {
	if k.hasScale {
		return []string{k.plural, k.plural + "/scale"}
	}
	return []string{k.plural}
}

// writesDeployments returns whether a controller creates Deployments.
func writesDeployments(d controller.Descriptor) bool {
	return slices.ContainsFunc(d.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "deployments") && slices.Contains(rule.Verbs, "create")
	})
}

// add adds the right to do something with resources, such as "get foos.samplecontroller.k8s.io".
func add(rights sets.Set[string], group string, resources []string, verbs ...string) {
	for _, resource := range resources {
		for _, verb := range verbs {
			rights.Insert(verb + " " + resource + "." + group)
		}
	}
}

// policy returns what a ValidatingAdmissionPolicy in a file matches.
func policy(t *testing.T, file, name string) *admissionregistrationv1.MatchResources {
	t.Helper()
	policies := decode[admissionregistrationv1.ValidatingAdmissionPolicy](t, file)
	i := slices.IndexFunc(policies, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		return p.Name == name
	})
	if i < 0 {
		t.Fatalf("%s has no ValidatingAdmissionPolicy %s", file, name)
	}
	return policies[i].Spec.MatchConstraints
}

// matches reports whether a rule names the operations on a resource.
func matches(
	rules []admissionregistrationv1.NamedRuleWithOperations, group, resource string,
	operations ...admissionregistrationv1.OperationType,
) bool {
	return slices.ContainsFunc(rules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) &&
			sets.New(r.Operations...).HasAll(operations...)
	})
}

// decode returns the documents of the files that match a pattern.
func decode[T any](t *testing.T, pattern string) (all []T) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	for _, file := range files {
		for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(read(t, file)), 4096); ; {
			var document T
			if err := documents.Decode(&document); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, document)
		}
	}
	return all
}

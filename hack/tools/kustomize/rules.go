// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
)

// nameLabel is the label that all installed objects have, and that selectors use.
const nameLabel, daemon = "app.kubernetes.io/name", "sample-controller-manager"

// build is the objects of a built kustomization.
type build []object

// object is an object of a build. typed is nil if its Go type is not in the scheme.
type object struct {
	*unstructured.Unstructured
	typed runtime.Object
}

// clusterScoped are the kinds without namespaces.
var clusterScoped = sets.New(
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "PriorityClass",
	"FlowSchema", "PriorityLevelConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
)

// kustomizeTakesForNamespaced are kinds newer than the schema in kustomize, which gives them a
// namespace. The API server ignores it.
var kustomizeTakesForNamespaced = sets.New("FlowSchema", "PriorityLevelConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")

var scheme = kubescheme.Scheme

func init() {
	utilruntime.Must(samplescheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
}

// decode decodes objects strictly: unknown and duplicate fields are errors. Of kinds whose Go
// types are not known here, it checks only the YAML.
func decode(stream string) (build, error) {
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects build
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		o := object{Unstructured: &unstructured.Unstructured{}}
		if err := utilyaml.UnmarshalStrict(document, &o.Object); err != nil {
			return nil, fmt.Errorf("decoding %.200s: %w", document, err)
		}
		if scheme.IsGroupRegistered(o.GroupVersionKind().Group) {
			if o.typed, _, err = decoder.Decode(document, nil, nil); err != nil {
				return nil, fmt.Errorf("decoding %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
		if kustomizeTakesForNamespaced.Has(o.GetKind()) {
			o.SetNamespace("")
		}
		objects = append(objects, o)
	}
}

// check returns the problems of the build. base is the build without components, to which a
// build without a daemon, such as monitoring, adds.
func (b build) check(k kustomization, base build) []string {
	var problems []string
	whole := b
	if len(all[*appsv1.Deployment](b)) == 0 {
		whole = slices.Concat(b, base)
	}
	for _, o := range b {
		kind := o.GetKind()
		complain := func(format string, args ...any) {
			name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
			problems = append(problems, kind+" "+name+" "+fmt.Sprintf(format, args...))
		}
		if o.GetLabels()[nameLabel] != daemon {
			complain("lacks the label %s: %s. Add it in its kustomization.yaml", nameLabel, daemon)
		}
		if (o.GetNamespace() == "") != clusterScoped.Has(kind) {
			complain("is in namespace %q. If its kind is cluster-scoped, add the kind in hack/tools/kustomize/rules.go; "+
				"otherwise set metadata.namespace, or it lands in the current namespace of whoever applies it", o.GetNamespace())
		}
		k.checkRenamed(o, complain)
		whole.checkReferences(o, complain)
		switch o := o.typed.(type) {
		case *rbacv1.ClusterRole:
			checkGrants(o.Rules, complain)
		case *rbacv1.Role:
			checkGrants(o.Rules, complain)
		case *apiextensionsv1.CustomResourceDefinition:
			for annotation, want := range kept {
				if o.Annotations[annotation] != want {
					complain("lacks the annotation %s: %s", annotation, want)
				}
			}
		case *appsv1.Deployment:
			checkDeployment(o, complain)
			for _, policy := range all[*networkingv1.NetworkPolicy](b) {
				checkNetworkPolicy(policy, o, complain)
			}
		}
	}
	return problems
}

// kept are annotations of CRDs, which nothing but an explicit command may delete.
var kept = map[string]string{
	"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
	"helm.sh/resource-policy":           "keep",
	"kustomize.toolkit.fluxcd.io/prune": "disabled",
}

// These rights allow everything, or reveal what nobody should see.
var (
	tooMuchVerbs     = sets.New("*", "bind", "escalate", "impersonate")
	tooMuchResources = sets.New("*", "secrets", "serviceaccounts/token", "pods/exec", "pods/attach", "nodes/proxy", "rolebindings", "clusterrolebindings")
)

// requestable matches the ServiceAccounts whose tokens may be requested: by operators, to read the
// status, to set the log verbosity and to lift the limit of deletions, and by the daemon, to write as its
// controllers. hack/test/e2e/security checks their rights.
var requestable = regexp.MustCompile(daemon + "-(status-reader|log-level|allow-deletions|.+-controller)$")

func checkGrants(rules []rbacv1.PolicyRule, complain complaint) {
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			if tooMuchVerbs.Has(verb) {
				complain("grants the verb %s: list the needed verbs, and do not grant power over others' permissions", verb)
			}
		}
		for _, resource := range rule.Resources {
			other := func(name string) bool { return !requestable.MatchString(name) }
			if resource == "serviceaccounts/token" && len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, other) {
				continue
			}
			if tooMuchResources.Has(resource) || strings.Contains(resource, "*") {
				complain("grants the resource %s, which must never be granted", resource)
			}
		}
		if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.NonResourceURLs, "*") {
			complain("grants all API groups or paths: list the needed ones")
		}
	}
}

// all returns the objects of one type.
func all[T runtime.Object](b build) (found []T) {
	for _, o := range b {
		if typed, ok := o.typed.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

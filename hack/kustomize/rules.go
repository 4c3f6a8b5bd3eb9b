// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
)

// nameLabel is what is installed bears, so that it can be found, and what it selects by.
const nameLabel, daemon = "app.kubernetes.io/name", "sample-controller-manager"

// build is the objects of a kustomization.
type build []object

type object interface {
	runtime.Object
	metav1.Object
}

// clusterScoped are the kinds that are in no namespace.
var clusterScoped = sets.New(
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "PriorityClass",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
)

// decode decodes objects strictly: no field may be unknown or given twice. Kinds of others,
// of which no type is known here, are left as they are.
func decode(stream string) (build, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, samplescheme.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
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
		var foreign unstructured.Unstructured
		if err := utilyaml.UnmarshalStrict(document, &foreign.Object); err != nil {
			return nil, fmt.Errorf("decoding %.200s: %w", document, err)
		}
		if group := foreign.GroupVersionKind().Group; !scheme.IsGroupRegistered(group) {
			objects = append(objects, &foreign)
			continue
		}
		decoded, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decoding %s %s: %w", foreign.GetKind(), foreign.GetName(), err)
		}
		objects = append(objects, decoded.(object))
	}
}

// check returns what is wrong with the build. base is the one without components.
func (b build) check(base build) []string {
	var problems []string
	for _, o := range b {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		complain := func(format string, args ...any) {
			problems = append(problems, kind+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")+" "+fmt.Sprintf(format, args...))
		}
		if o.GetLabels()[nameLabel] != daemon {
			complain("lacks the label %s: %s. Let its kustomization.yaml add it", nameLabel, daemon)
		}
		if (o.GetNamespace() == "") != clusterScoped.Has(kind) {
			complain("is in namespace %q. If its kind is in none, name it in hack/kustomize/rules.go; else write metadata.namespace, or it lands where who applies it happens to be", o.GetNamespace())
		}
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			checkGrants(o.Rules, complain)
		case *rbacv1.Role:
			checkGrants(o.Rules, complain)
		case *rbacv1.ClusterRoleBinding:
			b.checkRole(base, o.RoleRef, "", complain)
		case *rbacv1.RoleBinding:
			b.checkRole(base, o.RoleRef, o.Namespace, complain)
		}
	}
	for _, d := range all[*appsv1.Deployment](b) {
		problems = append(problems, checkDeployment(d)...)
		for _, policy := range all[*networkingv1.NetworkPolicy](b) {
			problems = append(problems, checkNetworkPolicy(policy, d)...)
		}
	}
	return problems
}

// Whoever may do this may do all, or see what nobody should.
var (
	tooMuchVerbs     = sets.New("*", "bind", "escalate", "impersonate")
	tooMuchResources = sets.New("*", "secrets", "serviceaccounts/token", "pods/exec", "pods/attach", "nodes/proxy", "rolebindings", "clusterrolebindings")
)

// statusReader is the ServiceAccount whose token operators may request.
const statusReader = daemon + "-status-reader"

func checkGrants(rules []rbacv1.PolicyRule, complain func(string, ...any)) {
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			if tooMuchVerbs.Has(verb) {
				complain("grants the verb %s: write out what is needed, and do without power over others' permissions", verb)
			}
		}
		for _, resource := range rule.Resources {
			if resource == "serviceaccounts/token" && slices.Equal(rule.ResourceNames, []string{statusReader}) {
				continue // it may only read the status: hack/e2e/security checks that
			}
			if tooMuchResources.Has(resource) || strings.Contains(resource, "*") {
				complain("grants the resource %s: too much, whatever the use", resource)
			}
		}
		if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.NonResourceURLs, "*") {
			complain("grants all API groups or paths: write out which")
		}
	}
}

// foreignRoles are those of Kubernetes that may be bound.
var foreignRoles = sets.New("system:auth-delegator", "extension-apiserver-authentication-reader")

// checkRole checks that a role that is bound is looked through by these checks, too: here,
// or in the base beside which a part is installed.
func (b build) checkRole(base build, ref rbacv1.RoleRef, namespace string, complain func(string, ...any)) {
	if foreignRoles.Has(ref.Name) {
		return
	}
	if ref.Kind == "ClusterRole" {
		namespace = ""
	}
	for _, o := range slices.Concat(b, base) {
		if o.GetObjectKind().GroupVersionKind().Kind == ref.Kind && o.GetName() == ref.Name && o.GetNamespace() == namespace {
			return
		}
	}
	complain("binds %s %s, which is not among what is installed", ref.Kind, ref.Name)
}

// all returns the objects of one type.
func all[T object](b build) []T {
	var found []T
	for _, o := range b {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

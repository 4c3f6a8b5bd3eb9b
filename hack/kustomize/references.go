// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// leaseName is the name of the Lease, which no prefix changes.
const leaseName = daemon

// servedNamespace is the namespace that a daemon for one namespace serves by default.
const servedNamespace = "default"

// foreignRoles are Kubernetes' own roles that may be bound.
var foreignRoles = sets.New("system:auth-delegator")

// references checks what the objects of a build say of others.
type references struct {
	all      build // includes the base if the build has no daemon
	problems []string
}

// checkReferences checks that what objects name is there, under this name and in this
// namespace. A build without a daemon, such as monitoring, adds to the base.
func (b build) checkReferences(base build) []string {
	r := references{all: b}
	if len(all[*appsv1.Deployment](b)) == 0 {
		r.all = slices.Concat(b, base)
	}
	for _, o := range b {
		complain := func(format string, args ...any) {
			r.problems = append(r.problems, strings.TrimSuffix(identity(o), "/")+" "+fmt.Sprintf(format, args...))
		}
		r.checkNamespace(o, complain)
		switch o := o.(type) {
		case *appsv1.Deployment:
			r.checkDaemon(o, complain)
		case *rbacv1.ClusterRoleBinding:
			r.checkBinding(o.RoleRef, o.Subjects, "", complain)
		case *rbacv1.RoleBinding:
			r.checkBinding(o.RoleRef, o.Subjects, o.Namespace, complain)
		case *rbacv1.Role:
			r.checkNames(o, complain)
		case *admissionv1.ValidatingAdmissionPolicy:
			checkPolicy(o, complain)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			r.checkPolicyBinding(o, complain)
		case *flowcontrolv1.FlowSchema:
			r.checkFlowSchema(o, complain)
		case *corev1.Secret:
			r.need("ServiceAccount", o.Namespace, o.Annotations[corev1.ServiceAccountNameKey], complain)
		case *policyv1.PodDisruptionBudget:
			r.checkSelector(o.Namespace, o.Spec.Selector, complain)
		case *corev1.Service:
			r.checkSelector(o.Namespace, metav1.SetAsLabelSelector(o.Spec.Selector), complain)
		case *apiextensionsv1.CustomResourceDefinition:
			checkKept(o, complain)
		case *unstructured.Unstructured:
			if o.GetKind() == "ServiceMonitor" {
				r.checkServiceMonitor(o, complain)
			}
		}
	}
	return r.problems
}

func identity(o object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

type complaint = func(format string, args ...any)

func (r *references) has(kind, namespace, name string) bool {
	return slices.ContainsFunc(r.all, func(o object) bool {
		return o.GetObjectKind().GroupVersionKind().Kind == kind && o.GetName() == name && o.GetNamespace() == namespace
	})
}

func (r *references) need(kind, namespace, name string, complain complaint) {
	if !r.has(kind, namespace, name) {
		complain("names %s %s, which is not installed", kind, strings.TrimPrefix(namespace+"/"+name, "/"))
	}
}

// checkNamespace checks that an object is in the namespace of the daemon. The rights of one
// that serves a single namespace are there.
func (r *references) checkNamespace(o object, complain complaint) {
	ns, served := o.GetNamespace(), r.served()
	if binding, ok := o.(*rbacv1.RoleBinding); ok && len(served) > 0 && binding.RoleRef.Kind == "ClusterRole" && !strings.Contains(binding.Name, "lease") {
		if !slices.Contains(served, ns) {
			complain("is in namespace %s, but the daemon serves %s: list the component's directory transformers under transformers", ns, strings.Join(served, ", "))
		}
	} else if ns != "" {
		r.need("Namespace", "", ns, complain)
	}
}

// served returns the namespaces of daemons that serve one each.
func (r *references) served() (namespaces []string) {
	for _, d := range all[*appsv1.Deployment](r.all) {
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "SERVED_NAMESPACE" {
				namespaces = append(namespaces, e.Value)
			}
		}
	}
	return namespaces
}

func (r *references) checkDaemon(d *appsv1.Deployment, complain complaint) {
	pod := d.Spec.Template.Spec
	r.need("ServiceAccount", d.Namespace, pod.ServiceAccountName, complain)
	if slices.Contains(pod.Containers[0].Args, "--use-service-account-credentials") && slices.ContainsFunc(r.all, isFence) {
		complain("writes with tokens that are not bound to its Pod, which the fence refuses")
	}
	if pod.PriorityClassName != "" {
		r.need("PriorityClass", "", pod.PriorityClassName, complain)
	}
}

func isFence(o object) bool { return strings.HasSuffix(o.GetName(), daemon+"-fence") }

// checkBinding checks that a bound role is subject to these checks, too: it must be in this
// build, or in the base if this is an addition.
func (r *references) checkBinding(role rbacv1.RoleRef, subjects []rbacv1.Subject, namespace string, complain complaint) {
	if role.Kind == "ClusterRole" {
		namespace = ""
	}
	if !foreignRoles.Has(role.Name) && !r.has(role.Kind, namespace, role.Name) {
		complain("binds %s %s, which is not installed", role.Kind, role.Name)
	}
	for _, s := range subjects {
		r.need(s.Kind, s.Namespace, s.Name, complain)
	}
}

// checkNames checks the names of objects that a Role permits.
func (r *references) checkNames(role *rbacv1.Role, complain complaint) {
	for _, rule := range role.Rules {
		for _, name := range rule.ResourceNames {
			switch rule.Resources[0] {
			case "leases":
				if name != leaseName {
					complain("permits the Lease %s, want %s", name, leaseName)
				}
			case "serviceaccounts/token":
				r.need("ServiceAccount", role.Namespace, name, complain)
			default:
				complain("permits %s %s: add a check of this name", rule.Resources[0], name)
			}
		}
	}
}

// account matches a ServiceAccount of a certain namespace in an expression.
var account = regexp.MustCompile(`system:serviceaccount:[a-z0-9-]+`)

// checkPolicy checks that a policy names no namespace, which kustomize could not change.
func checkPolicy(policy *admissionv1.ValidatingAdmissionPolicy, complain complaint) {
	for _, found := range account.FindAllString(policy.String(), -1) {
		if found != "system:serviceaccount:kube-system" {
			complain("names %s in an expression: take the namespace from params or match any", found)
		}
	}
}

func (r *references) checkPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding, complain complaint) {
	r.need("ValidatingAdmissionPolicy", "", b.Spec.PolicyName, complain)
	if p := b.Spec.ParamRef; p != nil {
		r.need("Namespace", "", p.Namespace, complain)
		if p.Name != leaseName {
			complain("takes its parameters from the Lease %s, want %s", p.Name, leaseName)
		}
	}
}

// checkFlowSchema checks whose requests get which priority.
func (r *references) checkFlowSchema(o *flowcontrolv1.FlowSchema, complain complaint) {
	if level := o.Spec.PriorityLevelConfiguration.Name; level != "leader-election" { // built in
		r.need("PriorityLevelConfiguration", "", level, complain)
	}
	for _, rule := range o.Spec.Rules {
		subjects := sets.New[string]()
		for _, s := range rule.Subjects {
			subjects.Insert(s.ServiceAccount.Name)
			r.need("ServiceAccount", s.ServiceAccount.Namespace, s.ServiceAccount.Name, complain)
		}
		for _, account := range all[*corev1.ServiceAccount](r.all) {
			if strings.HasSuffix(account.Name, "-controller") && o.Spec.PriorityLevelConfiguration.Name != "leader-election" && !subjects.Has(account.Name) {
				complain("does not match requests of %s: list flow-control before service-account-credentials", account.Name)
			}
		}
		for _, resources := range rule.ResourceRules {
			if !slices.Equal(resources.Namespaces, []string{flowcontrolv1.NamespaceEvery}) {
				complain("names the namespaces %q, which kustomize cannot change: use *", resources.Namespaces)
			}
		}
	}
}

// checkSelector checks that a selector matches the replicas.
func (r *references) checkSelector(namespace string, selector *metav1.LabelSelector, complain complaint) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || !slices.ContainsFunc(all[*appsv1.Deployment](r.all), func(d *appsv1.Deployment) bool {
		return d.Namespace == namespace && !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
	}) {
		complain("does not select the replicas")
	}
}

// checkKept checks that nothing but an explicit command deletes a CRD.
func checkKept(crd *apiextensionsv1.CustomResourceDefinition, complain complaint) {
	for annotation, want := range map[string]string{
		"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
		"helm.sh/resource-policy":           "keep",
		"kustomize.toolkit.fluxcd.io/prune": "disabled",
	} {
		if crd.Annotations[annotation] != want {
			complain("lacks the annotation %s: %s", annotation, want)
		}
	}
}

// checkServiceMonitor checks where Prometheus finds replicas, what it calls them, and what it
// sends and expects.
func (r *references) checkServiceMonitor(o *unstructured.Unstructured, complain complaint) {
	selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
	job, _, _ := unstructured.NestedString(o.Object, "spec", "jobLabel")
	endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
	if len(selector) == 0 || len(endpoints) != 1 {
		complain("selects %v and has %d endpoints", selector, len(endpoints))
		return
	}
	endpoint := endpoints[0].(map[string]any)
	secret, _, _ := unstructured.NestedString(endpoint, "authorization", "credentials", "name")
	r.need("Secret", o.GetNamespace(), secret, complain)
	server, verifies, _ := unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	for _, service := range all[*corev1.Service](r.all) {
		if service.Namespace != o.GetNamespace() || !labels.SelectorFromSet(selector).Matches(labels.Set(service.Labels)) {
			continue
		}
		if got := service.Labels[job]; got != daemon {
			complain("calls the job %q, but alerts ask for %s", got, daemon)
		}
		if want := service.Name + "." + service.Namespace + ".svc"; verifies && server != want {
			complain("verifies the name %s, want %s: list the component's directory transformers under transformers", server, want)
		}
		return
	}
	complain("selects no Service")
}

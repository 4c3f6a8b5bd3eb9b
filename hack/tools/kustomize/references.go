// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"
)

const (
	subjects = "{range .subjects[*]}{.kind}/{.namespace}/{.name} {end}"
	named    = `{range .rules[?(@.resources[0]==%q)].resourceNames[*]}%s{@} {end}`
)

// references are JSONPath templates of the objects that an object of each kind names, as
// KIND/NAMESPACE/NAME. The namespace "." is the object's own.
var references = map[string]string{
	"Deployment": "ServiceAccount/./{.spec.template.spec.serviceAccountName} " +
		"PriorityClass//{.spec.template.spec.priorityClassName}",
	"ClusterRoleBinding": "{.roleRef.kind}/./{.roleRef.name} " + subjects,
	"RoleBinding":        "{.roleRef.kind}/./{.roleRef.name} " + subjects,
	"Role":               fmt.Sprintf(named+named, "leases", "Lease//", "serviceaccounts/token", "ServiceAccount/./"),
	"ValidatingAdmissionPolicyBinding": "ValidatingAdmissionPolicy//{.spec.policyName} " +
		"Namespace//{.spec.paramRef.namespace} Lease//{.spec.paramRef.name}",
	"FlowSchema": "PriorityLevelConfiguration//{.spec.priorityLevelConfiguration.name} " +
		"{range .spec.rules[*].subjects[*].serviceAccount}ServiceAccount/{.namespace}/{.name} {end}",
	"Secret":         `ServiceAccount/./{.metadata.annotations.kubernetes\.io/service-account\.name}`,
	"ServiceMonitor": "Secret/./{.spec.endpoints[*].authorization.credentials.name}",
}

// foreign are objects that may be named although nobody installs them: those of Kubernetes, Argo CD and Flux, and
// the Lease, which the daemon creates under a name that no prefix changes.
var foreign = []string{
	"ClusterRole//system:auth-delegator", "PriorityLevelConfiguration//leader-election", "Lease//" + daemon,
	"Namespace//argocd", "Namespace//flux-system",
}

// servedNamespace is the namespace that a daemon for one namespace serves by default.
const servedNamespace = "default"

// account matches a ServiceAccount of a certain namespace in an expression.
var account = regexp.MustCompile(`system:serviceaccount:[a-z0-9-]+`)

type complaint = func(format string, args ...any)

// checkReferences checks that what an object names is in the build, under this name and in this
// namespace.
func (b build) checkReferences(o object, complain complaint) {
	if template, ok := references[o.GetKind()]; ok {
		path := jsonpath.New(o.GetKind()).AllowMissingKeys(true)
		var out strings.Builder
		if err := path.Parse(template); err != nil {
			complain("cannot be checked: %v", err)
		} else if err := path.Execute(&out, o.Object); err != nil {
			complain("cannot be checked: %v", err)
		}
		for reference := range strings.FieldsSeq(out.String()) {
			part := strings.SplitN(reference, "/", 3)
			if part[1] == "." {
				part[1] = o.GetNamespace()
			}
			b.need(part[0], part[1], part[2], complain)
		}
	}
	b.checkNamespace(o, complain)
	switch typed := o.typed.(type) {
	case *policyv1.PodDisruptionBudget:
		b.checkSelector(typed.Namespace, typed.Spec.Selector, complain)
	case *corev1.Service:
		b.checkSelector(typed.Namespace, metav1.SetAsLabelSelector(typed.Spec.Selector), complain)
	case *flowcontrolv1.FlowSchema:
		b.checkFlowSchema(typed, complain)
	case *appsv1.Deployment:
		args := typed.Spec.Template.Spec.Containers[0].Args
		if slices.Contains(args, "--use-service-account-credentials") && slices.ContainsFunc(b, isFence) {
			complain("writes with tokens that are not bound to its Pod, which the fence refuses")
		}
	}
	switch o.GetKind() {
	case "ValidatingAdmissionPolicy":
		for _, found := range account.FindAllString(fmt.Sprint(o.Object), -1) {
			if found != "system:serviceaccount:kube-system" {
				complain("names %s in an expression: take the namespace from params or match any", found)
			}
		}
	case "ServiceMonitor":
		b.checkServiceMonitor(o, complain)
	}
}

// need complains unless the object is in the build. An optional reference has no name.
func (b build) need(kind, namespace, name string, complain complaint) {
	if clusterScoped.Has(kind) {
		namespace = ""
	}
	installed := slices.ContainsFunc(b, func(o object) bool {
		return o.GetKind() == kind && o.GetName() == name && o.GetNamespace() == namespace
	})
	if name != "" && !installed && !slices.Contains(foreign, kind+"/"+namespace+"/"+name) {
		complain("names %s %s, which is not installed", kind, strings.TrimPrefix(namespace+"/"+name, "/"))
	}
}

func isFence(o object) bool { return strings.HasSuffix(o.GetName(), daemon+"-fence") }

// checkNamespace checks that an object is in the namespace of the daemon. The rights of one
// that serves a single namespace are there.
func (b build) checkNamespace(o object, complain complaint) {
	var served []string
	for _, d := range all[*appsv1.Deployment](b) {
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "SERVED_NAMESPACE" {
				served = append(served, e.Value)
			}
		}
	}
	role, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
	if len(served) == 0 || o.GetKind() != "RoleBinding" || role != "ClusterRole" || strings.Contains(o.GetName(), "lease") {
		b.need("Namespace", "", o.GetNamespace(), complain)
	} else if !slices.Contains(served, o.GetNamespace()) {
		complain("is in namespace %s, but the daemon serves %s: list the component's directory transformers under transformers",
			o.GetNamespace(), strings.Join(served, ", "))
	}
}

// checkFlowSchema checks whose requests get which priority.
func (b build) checkFlowSchema(o *flowcontrolv1.FlowSchema, complain complaint) {
	for _, rule := range o.Spec.Rules {
		for _, account := range all[*corev1.ServiceAccount](b) {
			matches := func(s flowcontrolv1.Subject) bool { return s.ServiceAccount.Name == account.Name }
			if strings.HasSuffix(account.Name, "-controller") && !slices.ContainsFunc(rule.Subjects, matches) &&
				o.Spec.PriorityLevelConfiguration.Name != "leader-election" {
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
func (b build) checkSelector(namespace string, selector *metav1.LabelSelector, complain complaint) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || !slices.ContainsFunc(all[*appsv1.Deployment](b), func(d *appsv1.Deployment) bool {
		return d.Namespace == namespace && !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
	}) {
		complain("does not select the replicas")
	}
}

// checkServiceMonitor checks where Prometheus finds replicas, what it calls them, and whose
// certificate it expects.
func (b build) checkServiceMonitor(o object, complain complaint) {
	selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
	job, _, _ := unstructured.NestedString(o.Object, "spec", "jobLabel")
	endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
	server := ""
	if len(endpoints) == 1 {
		server, _, _ = unstructured.NestedString(endpoints[0].(map[string]any), "tlsConfig", "serverName")
	}
	for _, service := range all[*corev1.Service](b) {
		if len(selector) == 0 || service.Namespace != o.GetNamespace() ||
			!labels.SelectorFromSet(selector).Matches(labels.Set(service.Labels)) {
			continue
		}
		if got := service.Labels[job]; got != daemon {
			complain("calls the job %q, but alerts ask for %s", got, daemon)
		}
		if want := service.Name + "." + service.Namespace + ".svc"; server != "" && server != want {
			complain("verifies the name %s, want %s: list the component's directory transformers under transformers",
				server, want)
		}
		return
	}
	complain("selects no Service")
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// promises are what the build promises with a component, by the component's name.
var promises = map[string]func(b, base build, d *appsv1.Deployment) []string{
	"high-availability": highAvailability,
	"single-namespace":  singleNamespace,
	"network-policy":    networkPolicy,
}

// checkPromises returns what does not hold of an installation of the daemon.
func (b build) checkPromises(base build) []string {
	deployments := all[*appsv1.Deployment](b)
	if len(deployments) != 1 {
		return []string{fmt.Sprintf("it has %d Deployments, want one", len(deployments))}
	}
	d := deployments[0]
	problems := reserve(b, d)
	for name, check := range promises {
		if slices.Contains(b.components, name) {
			problems = append(problems, check(b, base, d)...)
		}
	}
	if _, given := served(d); given && !slices.Contains(b.components, "single-namespace") {
		problems = append(problems, "it serves one namespace, but may write to all")
	}
	slices.Sort(problems)
	return problems
}

// reserve checks that there is a standby, through updates and while Nodes are drained, and
// that the memory of each replica is reserved and bounded.
func reserve(b build, d *appsv1.Deployment) (problems []string) {
	update := d.Spec.Strategy.RollingUpdate
	if update == nil || ptr.Deref(update.MaxUnavailable, intstr.IntOrString{}) != intstr.FromInt32(0) || ptr.Deref(update.MaxSurge, intstr.IntOrString{}) == intstr.FromInt32(0) {
		problems = append(problems, "an update stops replicas before others are ready")
	}
	budgets := all[*policyv1.PodDisruptionBudget](b)
	if len(budgets) != 1 || !selects(budgets[0].Spec.Selector, d) || ptr.Deref(budgets[0].Spec.MaxUnavailable, intstr.IntOrString{}) != intstr.FromInt32(1) {
		problems = append(problems, "no PodDisruptionBudget keeps all but one of the replicas")
	}
	c := d.Spec.Template.Spec.Containers[0]
	limit := c.Resources.Limits.Memory().Value()
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || limit == 0 {
		problems = append(problems, "it lacks requests, or a limit of memory")
	}
	var soft int64 // in MiB, as the file has it
	for _, e := range c.Env {
		if e.Name == "GOMEMLIMIT" {
			soft, _ = strconv.ParseInt(strings.TrimSuffix(e.Value, "MiB"), 10, 64)
		}
	}
	if soft<<20 < limit*85/100 || soft<<20 > limit*95/100 {
		problems = append(problems, fmt.Sprintf("GOMEMLIMIT is %d MiB, want nine tenths of the memory limit, %d MiB", soft, limit>>20))
	}
	return problems
}

// highAvailability checks that replicas are spread, and give way to nobody.
func highAvailability(b, _ build, d *appsv1.Deployment) (problems []string) {
	if ptr.Deref(d.Spec.Replicas, 1) != 3 {
		problems = append(problems, "it has not three replicas")
	}
	spread := map[string]corev1.UnsatisfiableConstraintAction{}
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		if c.MaxSkew == 1 && selects(c.LabelSelector, d) {
			spread[c.TopologyKey] = c.WhenUnsatisfiable
		}
	}
	if spread[corev1.LabelHostname] != corev1.DoNotSchedule || spread[corev1.LabelTopologyZone] == "" {
		problems = append(problems, fmt.Sprintf("its replicas are spread by %v, want by Nodes, without exception, and by zones", spread))
	}
	classes := all[*schedulingv1.PriorityClass](b)
	if len(classes) != 1 || classes[0].Name != d.Spec.Template.Spec.PriorityClassName || classes[0].GlobalDefault || classes[0].Value <= 0 {
		problems = append(problems, "its priority class is not among what is installed, or is not for it alone")
	}
	return problems
}

// singleNamespace checks that the daemon may do in the namespace that it serves what it
// may do in all by the base, and nothing elsewhere but what it does not do without.
func singleNamespace(b, base build, d *appsv1.Deployment) (problems []string) {
	namespace, given := served(d)
	if !given {
		return []string{"it has no --namespace"}
	}
	var bound []string
	for _, binding := range all[*rbacv1.ClusterRoleBinding](b) {
		if isOfDaemon(binding.Subjects, d) {
			bound = append(bound, binding.RoleRef.Name)
		}
	}
	for _, binding := range all[*rbacv1.RoleBinding](b) {
		if isOfDaemon(binding.Subjects, d) {
			bound = append(bound, binding.Namespace+": "+binding.RoleRef.Kind+" "+binding.RoleRef.Name)
		}
	}
	want := sets.New(
		"system:auth-delegator", "kube-system: Role extension-apiserver-authentication-reader",
		d.Namespace+": Role "+daemon+"-events", d.Namespace+": Role "+daemon+"-leader-election",
		namespace+": Role "+daemon+"-controllers", namespace+": Role "+daemon+"-events",
	)
	if !sets.New(bound...).Equal(want) {
		problems = append(problems, fmt.Sprintf("bound to its ServiceAccount are %q, want %q", sets.List(sets.New(bound...)), sets.List(want)))
	}
	everywhere := map[string][]rbacv1.PolicyRule{}
	for _, role := range all[*rbacv1.ClusterRole](base) {
		everywhere[role.Name] = role.Rules
	}
	for _, role := range all[*rbacv1.Role](b) {
		if rules, ok := everywhere[role.Name]; ok && role.Name != daemon+"-status-reader" && !equality.Semantic.DeepEqual(rules, role.Rules) {
			problems = append(problems, fmt.Sprintf("Role %s/%s grants another than the ClusterRole of the base", role.Namespace, role.Name))
		}
	}
	return problems
}

// served returns the namespace that the daemon is told to serve.
func served(d *appsv1.Deployment) (namespace string, given bool) {
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if namespace, given = strings.CutPrefix(arg, "--namespace="); given {
			return namespace, true
		}
	}
	return "", false
}

func isOfDaemon(subjects []rbacv1.Subject, d *appsv1.Deployment) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == d.Spec.Template.Spec.ServiceAccountName && s.Namespace == d.Namespace
	})
}

// networkPolicy checks that the replicas are reached on their port alone, and reach the
// API server and DNS alone, as far as ports tell.
func networkPolicy(b, _ build, d *appsv1.Deployment) (problems []string) {
	policies := all[*networkingv1.NetworkPolicy](b)
	if len(policies) != 1 || policies[0].Namespace != d.Namespace || !selects(&policies[0].Spec.PodSelector, d) || len(policies[0].Spec.PolicyTypes) != 2 {
		return []string{"no NetworkPolicy is about the replicas, both ways"}
	}
	var in, out []string
	for _, rule := range policies[0].Spec.Ingress {
		in = append(in, ports(rule.Ports)...)
	}
	for _, rule := range policies[0].Spec.Egress {
		out = append(out, ports(rule.Ports)...)
	}
	if want := fmt.Sprintf("[TCP %d]", d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort); fmt.Sprint(in) != want {
		problems = append(problems, fmt.Sprintf("replicas may be reached on %v, want %s", in, want))
	}
	if want := "[TCP 443 TCP 6443 UDP 53 TCP 53]"; fmt.Sprint(out) != want {
		problems = append(problems, fmt.Sprintf("replicas may reach %v, want %s", out, want))
	}
	return problems
}

// ports spells the ports of a rule out. None stands for all.
func ports(ports []networkingv1.NetworkPolicyPort) []string {
	if len(ports) == 0 {
		return []string{"all"}
	}
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprintf("%s %s", ptr.Deref(p.Protocol, corev1.ProtocolTCP), ptr.To(ptr.Deref(p.Port, intstr.FromString("all"))).String()))
	}
	return all
}

// selects tells whether the selector matches the Pods of the Deployment.
func selects(selector *metav1.LabelSelector, d *appsv1.Deployment) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}

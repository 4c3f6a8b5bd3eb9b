// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// checkDeployment checks that a rolling update keeps a standby, and that each replica has
// memory requests and limits.
func checkDeployment(d *appsv1.Deployment, complain complaint) {
	update := d.Spec.Strategy.RollingUpdate
	if update == nil || ptr.Deref(update.MaxUnavailable, intstr.IntOrString{}) != intstr.FromInt32(0) ||
		ptr.Deref(update.MaxSurge, intstr.IntOrString{}) == intstr.FromInt32(0) {
		complain("has an update strategy with which an update stops replicas before others are ready")
	}
	c := d.Spec.Template.Spec.Containers[0]
	limit := c.Resources.Limits.Memory().Value()
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || limit == 0 {
		complain("lacks requests, or a memory limit")
	}
	var soft int64 // in MiB, as in the file
	for _, e := range c.Env {
		if e.Name == "GOMEMLIMIT" {
			soft, _ = strconv.ParseInt(strings.TrimSuffix(e.Value, "MiB"), 10, 64)
		}
	}
	if soft<<20 < limit*85/100 || soft<<20 > limit*95/100 {
		complain("has a GOMEMLIMIT of %d MiB, want nine tenths of the memory limit, %d MiB", soft, limit>>20)
	}
}

// checkNetworkPolicy checks that the policy selects the replicas and opens only the ports
// that manifests/docs/install.md names: no cluster of the tests enforces one.
func checkNetworkPolicy(policy *networkingv1.NetworkPolicy, d *appsv1.Deployment, complain complaint) {
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) ||
		policy.Namespace != d.Namespace || len(policy.Spec.PolicyTypes) != 2 {
		complain("is not selected by the NetworkPolicy for ingress and egress")
	}
	var in, out []string
	for _, rule := range policy.Spec.Ingress {
		in = append(in, ports(rule.Ports)...)
	}
	for _, rule := range policy.Spec.Egress {
		out = append(out, ports(rule.Ports)...)
	}
	if want := "[TCP 10261]"; fmt.Sprint(in) != want {
		complain("may be reached on %v, want %s", in, want)
	}
	if want := "[TCP 443 TCP 6443 UDP 53 TCP 53]"; fmt.Sprint(out) != want {
		complain("may reach %v, want %s", out, want)
	}
}

// ports formats the ports of a rule. A rule without ports opens all ports.
func ports(ports []networkingv1.NetworkPolicyPort) []string {
	if len(ports) == 0 {
		return []string{"all"}
	}
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprintf("%s %s", ptr.Deref(p.Protocol, corev1.ProtocolTCP), p.Port))
	}
	return all
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

// findPolicies checks that each policy and its binding exist.
func (c *checker) findPolicies(ctx context.Context) {
	const check = "policies"
	names := slices.Sorted(maps.Keys(c.Policies))
	if len(names) == 0 {
		return
	}
	// Usually this is not granted, and a denied request would be noted in the audit log.
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		if review(ctx, c.client, Permission{Verb: "get", Group: admissionregistrationv1.GroupName, Resource: resource}) != "" {
			c.report.add(check, SKIP, "cannot be read with these credentials; with your own: kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings")
			return
		}
	}
	errs := make([]error, len(names))
	workqueue.ParallelizeUntil(ctx, parallelRequests, len(names), func(i int) { errs[i] = c.findPolicy(ctx, names[i]) })
	complete := true
	for i, err := range errs {
		if err == nil {
			continue
		}
		complete = false
		c.report.todo(c.Policies[names[i]])
		c.report.add(check, WARN, "%s does not protect the cluster: %v", names[i], err)
	}
	if complete {
		c.report.add(check, OK, "all %d installed", len(names))
	}
}

// findPolicy returns an error if a policy or its binding cannot be read.
func (c *checker) findPolicy(ctx context.Context, name string) error {
	if _, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{}); err != nil {
		return err
	}
	_, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	return err
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkNamespace checks that the only namespace that the program serves exists. Otherwise the
// program would serve nothing, and look healthy.
func (c *checker) checkNamespace(ctx context.Context) {
	const check = "namespace"
	// Usually this is not granted, and a denied request would be noted in the audit log.
	if review(ctx, c.client, Permission{Verb: "get", Resource: "namespaces", Name: c.Namespace}) != "" {
		c.report.add(check, SKIP, "%s cannot be read with these credentials; with your own: kubectl get namespace %s", c.Namespace, c.Namespace)
		return
	}
	_, err := c.client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case err == nil:
		c.report.add(check, OK, "%s exists", c.Namespace)
	case apierrors.IsNotFound(err):
		c.report.todo("create namespace " + c.Namespace + ", or correct --namespace")
		c.report.add(check, WARN, "%s does not exist, so nothing is served", c.Namespace)
	default:
		c.report.add(check, WARN, "%s cannot be read: %v", c.Namespace, err)
	}
}

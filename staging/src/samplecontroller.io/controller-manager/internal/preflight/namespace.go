// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// checkNamespace checks that the only namespace that the program serves exists. Otherwise the
// program would serve nothing, and look healthy.
func (c *checker) checkNamespace(ctx context.Context) {
	const check = "namespace"
	var err error
	// Usually this is not granted, and a denied request would be noted in the audit log.
	if review(ctx, c.client, Permission{Verb: "get", Resource: "namespaces", Name: c.Namespace}) == "" {
		_, err = c.client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	} else {
		err = TryNamespace(ctx, c.client, c.Namespace)
	}
	switch {
	case err == nil:
		c.report.add(check, OK, "%s exists", c.Namespace)
	case apierrors.IsNotFound(err):
		c.report.add(check, WARN, "%s does not exist, so nothing is served; create it, or correct --namespace", c.Namespace)
	case apierrors.IsForbidden(err):
		c.report.add(check, SKIP, "whether %[1]s exists cannot be checked with these credentials; with your own: kubectl get namespace %[1]s", c.Namespace)
	default:
		c.report.add(check, WARN, "%s cannot be read: %v", c.Namespace, err)
	}
}

// TryNamespace returns a NotFound error if the namespace does not exist. It needs no permission
// for namespaces: it creates an Event, as a dry run.
func TryNamespace(ctx context.Context, client kubernetes.Interface, namespace string) error {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "preflight-", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Namespace", Name: namespace, Namespace: namespace, APIVersion: "v1"},
		Reason:         "Preflight", Type: corev1.EventTypeNormal,
	}
	_, err := client.CoreV1().Events(namespace).Create(ctx, event,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

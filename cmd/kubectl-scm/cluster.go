// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// tokenLifetime is the shortest lifetime that the API server grants.
const tokenLifetime = 10 * time.Minute

// cluster is the cluster that the daemon runs in, as the operator sees it.
type cluster struct {
	client    kubernetes.Interface
	namespace string
	// reader is the name of the ServiceAccount that can read the status, and of the Role that
	// permits requesting its token.
	reader string
}

// readerToken returns a token of the ServiceAccount that can only read the status. The
// replica sees the token, so it must not be the operator's own.
func (c cluster) readerToken(ctx context.Context) (string, error) {
	lifetime := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	response, err := c.client.CoreV1().ServiceAccounts(c.namespace).CreateToken(ctx, c.reader, request,
		metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("requesting a token: ServiceAccount %s/%s not found; check --namespace and --status-reader, or apply manifests/rbac of this version", c.namespace, c.reader)
	}
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", c.namespace, c.reader, c.withAdvice(err))
	}
	return response.Status.Token, nil
}

// leaderPod returns the name of the Pod that holds the Lease.
func (c cluster) leaderPod(ctx context.Context) (string, error) {
	lease, err := c.client.CoordinationV1().Leases(c.namespace).Get(ctx, daemon, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("no replica leads: Lease %s/%s not found; check --namespace, or use --pod or --server", c.namespace, daemon)
	}
	if err != nil {
		return "", fmt.Errorf("looking up the leader: %w", c.withAdvice(err))
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" {
		return "", fmt.Errorf("no replica leads: Lease %s/%s has no holder; use --pod or --server", c.namespace, daemon)
	}
	// The holder is <host name>_<UUID>, and the host name of a Pod is its name.
	pod, _, _ := strings.Cut(holder, "_")
	_, err = c.client.CoreV1().Pods(c.namespace).Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the leader is not a Pod: Lease %s/%s is held by %s; use --server, for example --server=https://127.0.0.1:%d", c.namespace, daemon, holder, port)
	}
	if err != nil {
		return "", fmt.Errorf("looking up the leader's Pod: %w", c.withAdvice(err))
	}
	return pod, nil
}

// withAdvice adds to a Forbidden error how to get the permission, and to an Unauthorized error
// whose credentials it is about.
func (c cluster) withAdvice(err error) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%w: the API server does not accept your credentials; check --kubeconfig and --context", err)
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; you need the Role %[2]s: kubectl create rolebinding %[2]s -n %[3]s --role=%[2]s --user=<you>", err, c.reader, c.namespace)
}

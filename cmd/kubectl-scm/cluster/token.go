// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenLifetime is the shortest lifetime that the API server grants.
const tokenLifetime = 10 * time.Minute

// token returns a token of the ServiceAccount for requests to replicas. The replica sees the token, so it must not be
// the operator's own.
func (c *Cluster) token(ctx context.Context) (string, error) {
	lifetime, account := int64(tokenLifetime.Seconds()), c.options.account
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	response, err := c.client.CoreV1().ServiceAccounts(c.options.DaemonNamespace).CreateToken(ctx, account, request,
		metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("requesting a token: ServiceAccount %s/%s not found; check --daemon-namespace and --%s, or apply manifests/rbac of this version", c.options.DaemonNamespace, account, c.options.accountFlag)
	}
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", c.options.DaemonNamespace, account, c.withAdviceOn(err, account))
	}
	return response.Status.Token, nil
}

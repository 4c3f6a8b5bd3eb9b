// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks that a program would run with its settings and credentials: its
// permissions, the APIs that it reads, its namespace and its Lease. It writes nothing: a write
// that it tries is a dry run.
package preflight

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/internal/connection"
)

const (
	// requestTimeout is the timeout of each request.
	requestTimeout = 10 * time.Second
	// parallelRequests is how many requests are sent at a time.
	parallelRequests = 10
)

// Program is what to check.
type Program struct {
	// Config is the configuration of the client.
	Config *restclient.Config
	// Accounts are the ServiceAccounts of the controllers. Optional if no group of Permissions
	// has a controller.
	Accounts *connection.Accounts
	// Permissions are all permissions that the program needs.
	Permissions []Group
	// Undeclared are the controllers whose permissions are not known.
	Undeclared []string
	// APIs are the resources that the program reads.
	APIs []API
	// Namespace is the only namespace that the program serves; empty means all.
	Namespace string
	// Pause is the annotation that pauses objects. Optional.
	Pause *Pause
	// Lease is the Lease of the leader election. If nil, there is no election.
	Lease *Lease
}

// checker runs the checks of a program.
type checker struct {
	Program
	config    *restclient.Config
	client    kubernetes.Interface
	discovery discovery.DiscoveryInterfaceWithContext
	report    Report
	// missing are the permissions that are not granted.
	missing []Permission
}

// Run runs all checks. If the API server does not accept the credentials, it runs no others.
// It returns an error if ctx ends first.
func Run(ctx context.Context, p Program) (Report, error) {
	c := checker{Program: p}
	config := restclient.CopyConfig(p.Config)
	config.Timeout, config.QPS = requestTimeout, -1
	c.config = config
	var err error
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return Report{}, fmt.Errorf("making client %s: %w", config.UserAgent, err)
	}
	c.discovery = discovery.ToDiscoveryInterfaceWithContext(c.client.Discovery())
	if c.connect(ctx) {
		c.reviewPermissions(ctx)
		c.discoverAPIs(ctx)
		if c.Namespace != "" {
			c.checkNamespace(ctx)
		}
		if c.Pause != nil {
			c.checkPause(ctx)
		}
		if c.Lease != nil {
			c.checkLease(ctx)
		}
	}
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("stopped before all checks were done: %w", context.Cause(ctx))
	}
	return c.report, nil
}

// connect checks that the API server accepts the credentials.
func (c *checker) connect(ctx context.Context) bool {
	const check = "API server"
	review, err := c.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	switch {
	case err == nil:
		c.report.add(check, OK, "%s, as %s", c.Config.Host, review.Status.UserInfo.Username)
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // it does not say who asks
		c.report.add(check, OK, "%s", c.Config.Host)
	case apierrors.IsUnauthorized(err):
		c.report.add(check, FAIL, "%s: %s; renew the credentials, or check --kubeconfig", c.Config.Host, err.Error())
		return false
	default:
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the URL adds nothing
		}
		advice := "check that the API server runs, and that --kubeconfig and --master have its address"
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			advice = "check that --kubeconfig has the address and the certificate authority of this API server"
		}
		c.report.add(check, FAIL, "%s cannot be used: %v; %s", c.Config.Host, err, advice)
		return false
	}
	return true
}

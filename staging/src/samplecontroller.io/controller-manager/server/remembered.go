// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// metricsPath is served by the last answer of the API server while that cannot answer.
	// Otherwise an outage would hide the metrics that show it.
	metricsPath = "/metrics"
	// rememberedFor is how long an answer counts in an outage.
	rememberedFor = time.Hour
	// rememberedCallers is how many callers are remembered.
	rememberedCallers = 100
	// askTimeout limits each of the two questions about a remembered caller, so that a scrape
	// succeeds within Prometheus' usual timeout of 10 s even if the API server hangs.
	askTimeout = 3 * time.Second
)

// remembered holds the callers of /metrics that the API server accepted within the last hour.
type remembered struct {
	accepted *utilcache.LRUExpireCache
}

func newRemembered() remembered {
	return remembered{utilcache.NewLRUExpireCache(rememberedCallers)}
}

// ask calls question, and remembers its value under key if the caller is accepted. If the API
// server does not answer, it returns the value remembered before instead. Any other answer
// makes it forget the caller.
func (m remembered) ask(ctx context.Context, key any, question func(context.Context) (value any, accepted bool, err error)) (known any, instead bool) {
	known, ok := m.accepted.Get(key)
	if ok {
		limited, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		ctx = limited
	}
	value, accepted, err := question(ctx)
	switch {
	case err == nil && accepted:
		m.accepted.Add(key, value, rememberedFor)
	case ok && unanswered(err):
		return known, true
	default:
		m.accepted.Remove(key)
	}
	return nil, false
}

// unanswered reports whether an error means that the API server did not answer the question.
func unanswered(err error) bool {
	if aggregate, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		return slices.ContainsFunc(aggregate.Errors(), unanswered)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Code >= http.StatusInternalServerError || status.ErrStatus.Code == http.StatusTooManyRequests
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// rememberingAuthenticator authenticates callers of /metrics by the last answer while the API
// server does not answer. It stores only a hash of credentials.
type rememberingAuthenticator struct {
	authenticator.Request
	remembered
}

// AuthenticateRequest implements authenticator.Request.
func (a rememberingAuthenticator) AuthenticateRequest(r *http.Request) (response *authenticator.Response, ok bool, err error) {
	credentials := r.Header.Get("Authorization")
	if r.URL.Path != metricsPath || credentials == "" {
		return a.Request.AuthenticateRequest(r)
	}
	known, instead := a.ask(r.Context(), sha256.Sum256([]byte(credentials)), func(ctx context.Context) (any, bool, error) {
		response, ok, err = a.Request.AuthenticateRequest(r.WithContext(ctx))
		return response, ok, err
	})
	if instead {
		return known.(*authenticator.Response), true, nil
	}
	return response, ok, err
}

// rememberingAuthorizer authorizes callers of /metrics by the last answer while the API server
// does not answer.
type rememberingAuthorizer struct {
	authorizer.Authorizer
	remembered
}

// Authorize implements authorizer.Authorizer.
func (a rememberingAuthorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (decision authorizer.Decision, reason string, err error) {
	if attributes.GetPath() != metricsPath || attributes.GetVerb() != "get" || attributes.GetUser() == nil {
		return a.Authorizer.Authorize(ctx, attributes)
	}
	user := [2]string{attributes.GetUser().GetName(), attributes.GetUser().GetUID()}
	_, instead := a.ask(ctx, user, func(ctx context.Context) (any, bool, error) {
		decision, reason, err = a.Authorizer.Authorize(ctx, attributes)
		return nil, decision == authorizer.DecisionAllow, err
	})
	if instead {
		return authorizer.DecisionAllow, "the API server does not answer, and allowed it before", nil
	}
	return decision, reason, err
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// authenticatedOnly is an authenticator that accepts anonymous callers only on open paths.
// Elsewhere a request without credentials gets 401, whatever anonymous users may do.
type authenticatedOnly struct {
	authenticator.Request
	open authorizer.Authorizer
}

// AuthenticateRequest implements authenticator.Request.
func (a authenticatedOnly) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.Request.AuthenticateRequest(r)
	if !ok || err != nil || response.User.GetName() != user.Anonymous {
		return response, ok, err
	}
	decision, _, err := a.open.Authorize(r.Context(), authorizer.AttributesRecord{Path: r.URL.Path})
	if decision != authorizer.DecisionAllow {
		return nil, false, err
	}
	return response, true, nil
}

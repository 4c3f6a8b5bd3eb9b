// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// named is an authenticator that lets nobody be anonymous but on open paths. Elsewhere
// who sends no credentials is told so, by 401, whatever anonymous users may do.
type named struct {
	authenticator.Request
	open authorizer.Authorizer
}

// AuthenticateRequest implements authenticator.Request.
func (n named) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := n.Request.AuthenticateRequest(r)
	if !ok || err != nil || response.User.GetName() != user.Anonymous {
		return response, ok, err
	}
	decision, _, err := n.open.Authorize(r.Context(), authorizer.AttributesRecord{Path: r.URL.Path})
	if decision != authorizer.DecisionAllow {
		return nil, false, err
	}
	return response, true, nil
}

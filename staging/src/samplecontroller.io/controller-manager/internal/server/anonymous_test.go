// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/path"
)

func TestAnonymousOnlyOnOpenPaths(t *testing.T) {
	open, err := path.NewAuthorizer(NewOptions("test", 0).Authorization.AlwaysAllowPaths)
	if err != nil {
		t.Fatal(err)
	}
	for path, users := range map[string]map[string]bool{
		"/healthz":      {user.Anonymous: true, "admin": true, "": false},
		"/livez/ping":   {user.Anonymous: true, "admin": true, "": false},
		"/readyz":       {user.Anonymous: true, "admin": true, "": false},
		"/metrics":      {user.Anonymous: false, "admin": true, "": false},
		"/healthzother": {user.Anonymous: false, "admin": true, "": false},
		"/":             {user.Anonymous: false, "admin": true, "": false},
	} {
		for name, want := range users {
			n := authenticatedOnly{open: open, Request: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response,
				bool, error) {
				if name == "" {
					return nil, false, errors.New("no such token")
				}
				return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
			})}
			response, ok, err := n.AuthenticateRequest(httptest.NewRequest(http.MethodGet, path, nil))
			if ok != want || ok != (response != nil) || (err != nil) != (name == "") {
				t.Errorf("%s as %q: %v, %t, %v, want %t", path, name, response, ok, err, want)
			}
		}
	}
}

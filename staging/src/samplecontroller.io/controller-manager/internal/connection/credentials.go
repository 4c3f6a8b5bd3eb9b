// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection makes clients notice replaced tokens and dead connections sooner than
// client-go does by default, because its default periods are longer than a Lease. It also lets
// each controller write as a ServiceAccount of its own.
package connection

import (
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// FollowTokenFile makes clients of config reload the token file when the API server rejects
// the token, so that the next request uses the new token. By default client-go reads the
// file once a minute, even if the token is rejected.
func FollowTokenFile(config *restclient.Config) error {
	if config.BearerTokenFile == "" {
		return nil
	}
	source := transport.NewCachedFileTokenSource(config.BearerTokenFile)
	if _, err := source.Token(); err != nil {
		return err
	}
	config.Wrap(transport.ResettableTokenSourceWrapTransport(source))
	config.BearerToken, config.BearerTokenFile = "", ""
	return nil
}

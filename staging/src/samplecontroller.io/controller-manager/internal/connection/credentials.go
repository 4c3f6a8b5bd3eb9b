// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection makes clients notice a replaced token and dead connections sooner than
// client-go does by itself, because its own periods are longer than a Lease.
package connection

import (
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// FollowTokenFile makes clients of a configuration read the token's file again as soon as
// the API server refuses the token, so that the next request has the new one. client-go
// alone reads the file once a minute, whether or not the token is refused.
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

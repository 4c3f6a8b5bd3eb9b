// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"net"
	"time"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Renewable returns a configuration whose clients all share one transport, and a function that
// closes its connections. Requests in flight then fail. Once the transport has noticed, the next ones
// use new connections, which a load balancer may direct to another API server. An API server that has
// lost its etcd keeps its connections open, and answers their pings.
//
// Setting only the dialer of config would have the same effect. But then client-go makes a
// transport, and so a connection, for each client.
func Renewable(config *restclient.Config) (shared *restclient.Config, renew func(), err error) {
	url, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("address of the API server: %w", err)
	}
	dial := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // as client-go
	if config.Dial != nil {
		dial = config.Dial
	}
	dialer := connrotation.NewDialer(dial)
	base := restclient.CopyConfig(config)
	base.Dial = dialer.DialContext
	base.UserAgent = "" // each client has its own
	transport, err := restclient.TransportFor(base)
	if err != nil {
		return nil, nil, fmt.Errorf("making the transport: %w", err)
	}
	shared = restclient.AnonymousClientConfig(config)
	shared.Host = url.String() // with its scheme, which the TLS settings decide
	shared.TLSClientConfig, shared.Dial, shared.Proxy = restclient.TLSClientConfig{}, nil, nil
	shared.Transport = transport
	return shared, dialer.CloseAll, nil
}

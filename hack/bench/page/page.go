// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page asks a daemon for what it serves.
package page

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// Get returns the page of a URL as the admin of a cluster, who is allowed everything, by
// the daemon too, whose own certificate nobody has signed. The config is not changed.
func Get(ctx context.Context, admin *rest.Config, url string) ([]byte, error) {
	config := rest.CopyConfig(admin)
	config.CAData, config.CAFile, config.Insecure = nil, "", true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", url, response.Status, content)
	}
	return content, err
}

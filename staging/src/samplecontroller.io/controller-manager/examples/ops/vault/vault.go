// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vault is a client of the external API that keeps backups.
package vault

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client is a client of the vault. It is safe for concurrent use.
type Client struct {
	url  string
	http *http.Client
	dry  bool // nothing is sent
}

// New returns a client of the vault at address, which [Validate] accepts.
func New(address string, transport http.RoundTripper) Client {
	return Client{url: address, http: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
}

// WithoutWrites returns a client whose writes succeed and send nothing.
func (c Client) WithoutWrites() Client {
	c.dry = true
	return c
}

// Validate returns an error if the value of a flag is not the URL of a vault.
func Validate(flag, address string) []error {
	if u, err := url.Parse(address); err != nil || u.Host == "" {
		return []error{fmt.Errorf("--%s: %q is not a URL", flag, address)}
	}
	return nil
}

// URL returns the address of the vault.
func (c Client) URL() string { return c.url }

// Put makes the vault keep this many copies of a backup.
func (c Client) Put(ctx context.Context, backup fmt.Stringer, retention int32) error {
	return c.do(ctx, http.MethodPut, backup, fmt.Sprintf(`{"retention":%d}`, retention))
}

// Delete deletes the copies of a backup. It succeeds if there are none.
func (c Client) Delete(ctx context.Context, backup fmt.Stringer) error {
	return c.do(ctx, http.MethodDelete, backup, "")
}

func (c Client) do(ctx context.Context, method string, backup fmt.Stringer, body string) error {
	if c.dry {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/vaults/"+backup.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // so that the connection is used again
		return err
	}
	if response.StatusCode >= 300 && response.StatusCode != http.StatusNotFound {
		return fmt.Errorf("the vault answered %s", response.Status)
	}
	return nil
}

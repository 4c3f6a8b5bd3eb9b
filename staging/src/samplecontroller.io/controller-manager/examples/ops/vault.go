// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// vault is the client of the external API that keeps backups.
type vault struct {
	url    string
	client *http.Client
}

func (v vault) put(ctx context.Context, backup cache.ObjectName, retention int32) error {
	return v.do(ctx, http.MethodPut, backup, fmt.Sprintf(`{"retention":%d}`, retention))
}

func (v vault) delete(ctx context.Context, backup cache.ObjectName) error {
	return v.do(ctx, http.MethodDelete, backup, "")
}

func (v vault) do(ctx context.Context, method string, backup cache.ObjectName, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, v.url+"/vaults/"+backup.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := v.client.Do(request)
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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	restclient "k8s.io/client-go/rest"
)

// SourceConfig returns the config of clients that informers read from.
func (c *ControllerContext) SourceConfig() *restclient.Config { return c.rest("informers", noTimeout) }

// GatedConfig returns the config of clients of the named controller.
func (c *ControllerContext) GatedConfig(name string) *restclient.Config { return c.gated(name) }

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	restclient "k8s.io/client-go/rest"
)

// SourceConfig and GatedConfig are what the constructors of this package make the clients
// of informers and of controllers from.
func (c *ControllerContext) SourceConfig() *restclient.Config { return c.rest("informers", noTimeout) }

func (c *ControllerContext) GatedConfig(name string) *restclient.Config { return c.gated(name) }

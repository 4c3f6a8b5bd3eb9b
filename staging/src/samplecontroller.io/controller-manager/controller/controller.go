// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-base/featuregate"
)

// Controller brings one part of a cluster to where it should be.
type Controller interface {
	// Name is the name that the controller is registered under.
	Name() string
	// Run works for one term: until ctx ends. It returns only when every
	// goroutine that it started has ended, nil if it was stopped by ctx. After
	// it has returned it may be called again, but never while it runs.
	Run(ctx context.Context) error
}

// Constructor makes a controller from its context. It asks for informers and adds indexes
// to them; it starts nothing and calls no API, because it runs on a standby too.
type Constructor func(ctx context.Context, c *Context) (Controller, error)

// Descriptor is a controller as data.
type Descriptor struct {
	// Name identifies the controller everywhere: in the --controllers flag, in
	// logs, metrics, health checks, Events, and as field manager and user agent.
	// It is a lower-case DNS label that ends in "-controller". Names are IDs:
	// once released they do not change.
	Name string
	// Aliases are other names that --controllers takes for it.
	Aliases []string
	// New makes the controller.
	New Constructor
	// RequiredFeatureGates must all be enabled, or the controller is disabled.
	RequiredFeatureGates []featuregate.Feature
	// DisabledByDefault controllers are not enabled by "*".
	DisabledByDefault bool
	// Workers is how many syncs run at once by default.
	Workers int
	// Flags adds the flags of the controller; --help shows them in a section named after
	// it. [Registry.AddFlags] calls it once. Optional.
	Flags func(*pflag.FlagSet)
	// Validate returns one error for each invalid flag value, in the form
	// "--flag: message". Optional.
	Validate func() []error
	// Rules are the permissions that the controller needs, and no more. They
	// name every API that it reads or writes.
	Rules []rbacv1.PolicyRule
}

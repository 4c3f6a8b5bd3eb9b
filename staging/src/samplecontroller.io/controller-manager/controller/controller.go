// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Controller reconciles one part of the cluster state. [For] makes one; implement it yourself only for
// work that is not about single objects.
type Controller interface {
	// Name returns the name of the controller's [Descriptor].
	Name() string
	// Run runs the controller for one term, until ctx ends. It returns after all goroutines
	// that it started have ended: nil if ctx has ended. If it returns earlier or panics, it is
	// called again with backoff. It is called once for each term, but never concurrently.
	Run(ctx context.Context) error
}

// Constructor makes a controller from its context. It requests informers and adds indexes to
// them. It must not start anything or call the API, because it also runs on standbys, and without a
// cluster for rbac. If it fails or panics, the other controllers run: see [Registry.Build].
type Constructor func(ctx context.Context, c *Context) (Controller, error)

// Descriptor describes a controller before it is made. Fields are required unless they say otherwise.
type Descriptor struct {
	// Name identifies the controller everywhere: in the --controllers flag, in logs, metrics,
	// health checks and Events, and as field manager and user agent. It is a lower-case DNS
	// label that ends in "-controller". Names are IDs: they do not change after a release.
	Name string
	// Aliases are other names that --controllers accepts, lower-case DNS labels. Optional.
	Aliases []string
	// New makes the controller.
	New Constructor
	// DisabledByDefault excludes the controller from "*" in --controllers.
	DisabledByDefault bool
	// Workers is the default number of concurrent syncs, at least 1.
	Workers int
	// Flags adds the flags of the controller. --help shows them in a section named after it.
	// [Registry.AddFlags] calls Flags once. Optional.
	Flags func(*pflag.FlagSet)
	// Validate returns one error for each invalid flag value, in the form
	// "--flag: message". Optional.
	Validate func() []error
	// Rules are the permissions that the controller needs beyond those that it declares by [For],
	// [Owns], [Watch] and [Refers], such as those of its own clients. Optional.
	Rules []rbacv1.PolicyRule
	// RulesWith returns those of the Rules that the controller needs while only the named
	// controllers are enabled: see [Context.Runs]. Optional; if nil, it always needs all.
	RulesWith func(enabled []string) []rbacv1.PolicyRule
}

// With returns the descriptor with the rules that the controller needs while only the named
// controllers are enabled.
func (d Descriptor) With(enabled []string) Descriptor {
	if d.RulesWith != nil {
		d.Rules = d.RulesWith(enabled)
	}
	return d
}

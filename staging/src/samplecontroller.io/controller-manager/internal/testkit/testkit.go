// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testkit lets package managertest see what programs must not depend on. The packages that
// have it set the functions when the process starts. They take their values as any, because these
// packages import this one.
package testkit

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Configure returns how to run a manager.Program with the given flags until a context ends, and the
// names of the enabled controllers. config replaces the configuration of its clients that flags
// name. The function panics on a misuse of the library.
var Configure func(ctx context.Context, program any, config *restclient.Config, args []string) (
	run func(context.Context) error, enabled []string, err error)

// Plan returns the plan of a manager.Program with the given flags, a plan.Report. config is that of [Configure].
var Plan func(ctx context.Context, program any, config *restclient.Config, args []string) (report any, err error)

// Leading returns nil while the process of a *controller.Context leads and sends writes. Otherwise
// it returns the reason why not.
var Leading func(context any) error

// AllowDeletions lets the controller of a *controller.Context delete without a limit for 10 minutes.
var AllowDeletions func(context any)

// Denied returns why the controller of a *controller.Context cannot do its work, nil if it can.
var Denied func(context any) error

// SwitchedOff reports whether the named controller of the program of a *controller.Context is switched off.
var SwitchedOff func(context any, name string) bool

// Versions returns the resourceVersion of each object of a resource in the cache of an
// *informers.Factory.
var Versions func(factory any, resource schema.GroupVersionResource) map[cache.ObjectName]string

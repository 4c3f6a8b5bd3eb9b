// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testkit lets package managertest see what programs must not depend on. The packages that
// have it set the functions when the process starts. They take their values as any, because these
// packages import this one.
package testkit

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Leading returns nil while the process of a *controller.Context leads and sends writes. Otherwise
// it returns the reason why not.
var Leading func(context any) error

// Versions returns the resourceVersion of each object of a resource in the cache of an
// *informers.Factory.
var Versions func(factory any, resource schema.GroupVersionResource) map[cache.ObjectName]string

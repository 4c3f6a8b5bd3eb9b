// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// changedNothing counts a patch that had no effect, and logs the first one of the controller for the
// resource. The cause is a function that sets fields to values which the API server replaces. It sends
// such a patch at each call.
func (r *resource[T]) changedNothing(ctx context.Context, cached T, operations []operation, subresources []string) {
	r.writes.NoOp(r.inMetrics(subresources...))
	if !r.noted.CompareAndSwap(false, true) {
		return
	}
	paths := fieldsOf(operations)
	r.note(fmt.Sprintf("a patch of %s %s changed nothing: the API server sets %s to other values, such as "+
		"defaults: set only the fields that the controller determines",
		r.kind.Kind, cache.MetaObjectToName(cached), strings.Join(paths, ", ")))
	klog.FromContext(ctx).Info("A patch changed nothing: the API server sets these fields to other values, such as defaults. Set only the fields that the controller determines. Later ones are only counted",
		"resource", r.inMetrics(subresources...), "object", klog.KObj(cached), "paths", paths)
}

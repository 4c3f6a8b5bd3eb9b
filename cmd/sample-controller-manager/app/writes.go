// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"
)

// transports are those of the controllers, by their names.
type transports struct {
	mutex        sync.Mutex
	byController map[string]*writes.Transport
}

// writesOf returns what all that a controller writes passes through, whichever of its
// clients writes it. It may be called by several goroutines.
func (c clients) writesOf(controller string) *writes.Transport {
	c.transports.mutex.Lock()
	defer c.transports.mutex.Unlock()
	transport := c.transports.byController[controller]
	if transport == nil {
		transport = writes.New(controller, processMetrics().writes, leadership.ErrNotLeading)
		c.transports.byController[controller] = transport
	}
	return transport
}

// denied says which permissions a controller lacks, and since when.
func (c clients) denied(controller string) (why error, since time.Time) {
	denials := c.writesOf(controller).Denied()
	if len(denials) == 0 {
		return nil, time.Time{}
	}
	first := slices.MinFunc(denials, func(a, b writes.Denial) int { return a.Since.Compare(b.Since) })
	return errors.New(writes.Summary(denials)), first.Since
}

// tally has each sync tell what it wrote.
func tally(ctx context.Context) (context.Context, func() []reconcile.Write) {
	ctx, tally := writes.WithTally(ctx)
	return ctx, func() []reconcile.Write {
		var written []reconcile.Write
		for _, line := range tally.Lines() {
			written = append(written, reconcile.Write{Verb: line.Verb, Resource: line.Resource, Result: string(line.Result), Took: line.Took})
		}
		return written
	}
}

// prepareWrites makes the series of what the named controllers write exist.
func prepareWrites(registry *controller.Registry[*ControllerContext], names []string) {
	for _, d := range registry.Descriptors() {
		if slices.Contains(names, d.Name) {
			processMetrics().writes.Prepare(d.Name, writesAllowedBy(d.Rules)...)
		}
	}
}

// writesAllowedBy returns what the rules allow to write, but for finalizers, which are
// never requested.
func writesAllowedBy(rules []rbacv1.PolicyRule) []writes.Write {
	var allowed []writes.Write
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if strings.HasSuffix(resource, "/finalizers") {
					continue
				}
				for _, verb := range rule.Verbs {
					if slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb) {
						allowed = append(allowed, writes.Write{Verb: verb, Resource: schema.GroupResource{Group: group, Resource: resource}.String()})
					}
				}
			}
		}
	}
	return allowed
}

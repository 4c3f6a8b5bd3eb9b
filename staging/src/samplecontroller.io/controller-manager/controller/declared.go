// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// MayPatch lets a controller write objects of a kind that it reconciles: see [Request.Patch]. Without it,
// Patch fails with an error that names the option.
func MayPatch() Option {
	return func(o *kindOptions) {
		o.only("MayPatch", "For")
		o.mayPatch = true
	}
}

// MayPatchStatus lets a controller write the status of a kind that it reconciles: see
// [Request.UpdateStatus]. Without it, UpdateStatus fails with an error that names the option.
func MayPatchStatus() Option {
	return func(o *kindOptions) {
		o.only("MayPatchStatus", "For")
		o.mayPatchStatus = true
	}
}

// MayDelete lets a controller delete objects of a kind that it reconciles or owns: see
// [Request.Delete] and [Owned.Delete]. Without it, they fail with an error that names the option.
func MayDelete() Option {
	return func(o *kindOptions) {
		o.only("MayDelete", "For", "Owns")
		o.mayDelete = true
	}
}

// declared are the verbs that a controller needs for each resource, as it has declared them by [For],
// [Owns], [Watch], [Refers], [Builder.Finalize] and options.
type declared map[schema.GroupResource]sets.Set[string]

func (d declared) add(resource schema.GroupResource, verbs ...string) {
	if d[resource] == nil {
		d[resource] = sets.New[string]()
	}
	d[resource].Insert(verbs...)
}

// declare adds what the options of a kind say. Two permissions show in no request:
//
//   - update of the subresource finalizers of owners: the admission plugin
//     OwnerReferencesPermissionEnforcement requires it of callers that set a controller reference.
//   - list of a kind that is watched: API servers that do not stream lists need it.
//
// get is not needed: a single object is read by a list.
func (r *resource[T]) declare(c *Context, o kindOptions) {
	name := r.name.GroupResource()
	c.declare(name, "list", "watch")
	if o.mayPatch {
		c.declare(name, "patch")
	}
	if o.mayDelete {
		c.declare(name, "delete")
	}
	if o.mayPatchStatus {
		c.declare(subresource(name, "status"), "patch")
	}
}

func subresource(of schema.GroupResource, name string) schema.GroupResource {
	return schema.GroupResource{Group: of.Group, Resource: of.Resource + "/" + name}
}

// may returns an error if the controller has not declared a write.
func (r *resource[T]) may(c *Context, verb, builder, option string, subresources ...string) error {
	name := r.name.GroupResource()
	for _, s := range subresources {
		name = subresource(name, s)
	}
	if c.declared[name].Has(verb) {
		return nil
	}
	return fmt.Errorf("%s has not declared that it may %s %s: give %s the option %s", c.name, verb, name, builder, option)
}

// declare adds verbs for a resource.
func (c *Context) declare(resource schema.GroupResource, verbs ...string) {
	if c.declared == nil {
		c.declared = declared{}
	}
	c.declared.add(resource, verbs...)
}

// Rules returns the permissions that the controller has declared so far by [For], [Owns], [Watch],
// [Refers], [Builder.Finalize] and options. Those in Descriptor.Rules are not among them.
func (c *Context) Rules() []rbacv1.PolicyRule { return c.declared.rules() }

// rules returns the declared permissions, sorted by group and resource.
func (d declared) rules() []rbacv1.PolicyRule {
	resources := slices.SortedFunc(maps.Keys(d), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	var rules []rbacv1.PolicyRule
	for _, resource := range resources {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: sets.List(d[resource]),
		})
	}
	return rules
}

// RulesOf returns the permissions that a controller needs: its Rules, and what it has declared while it
// was built. It returns nil if the controller has no Rules and declares nothing.
func (s *Shared) RulesOf(d Descriptor) []rbacv1.PolicyRule {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if rules := s.declared[d.Name].rules(); len(rules) > 0 {
		return slices.Concat(d.Rules, rules)
	}
	return d.Rules
}

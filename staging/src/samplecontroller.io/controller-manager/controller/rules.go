// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/controller-manager/internal/requests"
	"samplecontroller.io/controller-manager/internal/writes"
)

// statusGroups returns the API groups of the kinds whose status the Rules of the controllers,
// including disabled ones, permit to write.
func (r *Registry) statusGroups() sets.Set[string] {
	groups := sets.New[string]()
	for _, d := range r.descriptors {
		for _, rule := range d.Rules {
			if slices.ContainsFunc(rule.Resources, isStatus) {
				groups.Insert(rule.APIGroups...)
			}
		}
	}
	return groups
}

// declaredStatusGroups returns the API groups of the kinds whose status controllers have declared to
// write.
func (s *Shared) declaredStatusGroups() sets.Set[string] {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	groups := sets.New[string]()
	for _, of := range s.declared {
		for resource := range of {
			if isStatus(resource.Resource) {
				groups.Insert(resource.Group)
			}
		}
	}
	return groups
}

func isStatus(resource string) bool { return strings.HasSuffix(resource, "/status") }

// Reads reports whether a verb of a rule for a resource reads. With
// --use-service-account-credentials the program reads for its controllers, and the
// ServiceAccount of each does everything else. To get pods/exec, pods/attach or
// pods/portforward is not to read: it opens a WebSocket into a Pod.
func Reads(resource, verb string) bool { return requests.IsReadVerb(resource, verb) }

// writesAllowedBy returns the writes that the rules allow, except those of finalizers
// subresources, which are never requested.
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
						allowed = append(allowed, writes.Write{Verb: verb, Resource: schema.GroupResource{Group: group,
							Resource: resource}.String()})
					}
				}
			}
		}
	}
	return allowed
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/preflight"
	"samplecontroller.io/controller-manager/internal/server"
)

// needs are what a program needs in a cluster.
type needs struct {
	controllers []controller.Descriptor
	lease       *preflight.Lease
	groups      []preflight.Group
}

// newNeeds returns the needs of the enabled controllers, of leader election and of Events.
func newNeeds(c *options.Config, shared *controller.Shared, enabled []string) *needs {
	n := &needs{}
	for _, d := range c.Controllers.Descriptors() {
		if slices.Contains(enabled, d.Name) {
			d = d.With(enabled)
			d.Rules = shared.RulesOf(d)
			n.controllers = append(n.controllers, d)
		}
	}
	n.addControllers(c)
	events := []string{c.Generic.Namespace}
	if election := c.LeaderElection; election.LeaderElect && c.DryRun == nil {
		n.lease = &preflight.Lease{Namespace: election.ResourceNamespace, Name: election.ResourceName,
			Timing: election.Timing()}
		if n.lease.Namespace == metav1.NamespaceSystem { // the default outside of a cluster
			n.lease.Elsewhere = "set --leader-elect-resource-namespace to the namespace of the Lease, or grant the permissions in " + n.lease.Namespace
		}
		n.groups = append(n.groups, preflight.Group{Name: "leader election", Permissions: n.ofElection()})
		if c.Generic.Namespace != "" && c.Generic.Namespace != n.lease.Namespace {
			events = append(events, n.lease.Namespace) // of the Lease
		}
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}
	var all []preflight.Permission
	for _, namespace := range events {
		all = append(all, preflight.Expand(rule, namespace)...)
	}
	n.add("Events", all)
	return n
}

// addControllers adds what the controllers need. With accounts of their own, the program only
// reads for them, and each account writes.
func (n *needs) addControllers(c *options.Config) {
	if !c.Generic.UseServiceAccountCredentials {
		n.add("controllers", ofControllers(c.Generic.Namespace, n.controllers...))
		return
	}
	reads := func(p preflight.Permission) bool { return controller.Reads(p.Resource, p.Verb) }
	writes := func(p preflight.Permission) bool { return !reads(p) }
	n.add("controllers", slices.DeleteFunc(ofControllers(c.Generic.Namespace, n.controllers...), writes))
	for _, d := range n.controllers {
		all := slices.DeleteFunc(ofControllers(c.Generic.Namespace, d), reads)
		n.groups = append(n.groups, preflight.Group{Name: d.Name, Controller: d.Name, Permissions: all})
	}
}

// undeclared returns the names of the controllers without Rules. One that needs no permission has an
// empty list.
func (n *needs) undeclared() (names []string) {
	for _, d := range n.controllers {
		if d.Rules == nil {
			names = append(names, d.Name)
		}
	}
	return names
}

func (n *needs) add(name string, permissions []preflight.Permission) {
	if len(permissions) > 0 {
		n.groups = append(n.groups, preflight.Group{Name: name, Permissions: permissions})
	}
}

// ofControllers returns the permissions that the controllers need, each once, with the
// controllers that need it.
func ofControllers(namespace string, controllers ...controller.Descriptor) []preflight.Permission {
	var all []preflight.Permission
	neededBy := map[preflight.Permission][]string{}
	for _, d := range controllers {
		for _, rule := range d.Rules {
			for _, permission := range preflight.Expand(rule, namespace) {
				if neededBy[permission] == nil {
					all = append(all, permission)
				}
				if !slices.Contains(neededBy[permission], d.Name) {
					neededBy[permission] = append(neededBy[permission], d.Name)
				}
			}
		}
	}
	for i, permission := range all {
		all[i].For = strings.Join(neededBy[permission], ", ")
	}
	return all
}

// ofElection returns the permissions that the election needs for its Lease.
func (n *needs) ofElection() []preflight.Permission {
	rule := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}}
	all := preflight.Expand(rule, n.lease.Namespace) // the name is in the body of the request
	rule.Verbs, rule.ResourceNames = []string{"get", "update", "watch"}, []string{n.lease.Name}
	return append(all, preflight.Expand(rule, n.lease.Namespace)...)
}

// addServing adds what the server needs to authenticate and authorize its callers. What it
// asks with other credentials is left out.
func (n *needs) addServing(o *server.Options) {
	var all []preflight.Permission
	if o.Authentication.RemoteKubeConfigFile == "" {
		all = append(all, preflight.Permission{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews", ClusterScoped: true})
		if namespace, name := o.ClientCAConfigMap(); name != "" {
			rule := rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"},
				ResourceNames: []string{name}, Verbs: []string{"get", "list", "watch"}}
			all = append(all, preflight.Expand(rule, namespace)...)
		}
	}
	if o.Authorization.RemoteKubeConfigFile == "" {
		all = append(all, preflight.Permission{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews", ClusterScoped: true})
	}
	n.add("serving", all)
}

// apis returns the resources with the subresources that controllers write, and the
// controllers that read them.
func (n *needs) apis(resources []informers.Resource) []preflight.API {
	var apis []preflight.API
	for _, read := range resources {
		resource := read.Resource
		api := preflight.API{Resource: resource}
		for _, d := range n.controllers {
			for _, rule := range d.Rules {
				if !slices.Contains(rule.APIGroups, resource.Group) {
					continue
				}
				for _, name := range rule.Resources {
					parent, subresource, _ := strings.Cut(name, "/")
					if parent != resource.Resource {
						continue
					}
					// Nothing is served at finalizers: it only permits owner references.
					if subresource != "" && subresource != "finalizers" && !slices.Contains(api.Subresources, subresource) {
						api.Subresources = append(api.Subresources, subresource)
					}
					if slices.Contains(rule.Verbs, "list") && !slices.Contains(api.Readers, d.Name) {
						api.Readers = append(api.Readers, d.Name)
					}
				}
			}
		}
		apis = append(apis, api)
	}
	return apis
}

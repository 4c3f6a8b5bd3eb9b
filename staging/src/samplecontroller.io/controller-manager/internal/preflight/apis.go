// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
)

// API is a resource that controllers read.
type API struct {
	Resource schema.GroupVersionResource
	// Subresources are those that controllers write, such as status.
	Subresources []string
	// Readers are the controllers that read the resource.
	Readers []string
}

// String returns resource, group and version.
func (a API) String() string {
	return a.Resource.GroupResource().String() + " " + a.Resource.Version
}

// apiState is what the API server says about an API.
type apiState struct {
	served bool
	// problem is empty if all is served.
	problem string
}

// discoverAPIs checks that the API server serves each resource, in the version and with the
// subresources that the program uses.
func (c *checker) discoverAPIs(ctx context.Context) {
	const check = "APIs"
	found := make([]apiState, len(c.APIs))
	workqueue.ParallelizeUntil(ctx, parallelRequests, len(c.APIs), func(i int) { found[i] = c.discover(ctx, c.APIs[i]) })
	complete := true
	for i := range c.APIs {
		if problem := found[i].problem; problem != "" {
			complete = false
			c.report.add(check, WARN, "%s", problem)
		}
	}
	if complete {
		c.report.add(check, OK, "all %d served", len(c.APIs))
	} else if idle := c.idle(found); idle != "" {
		c.report.add(check, FAIL, "no controller would run: none of the custom resources of %s is served", idle)
	}
}

// discover returns whether an API is served.
func (c *checker) discover(ctx context.Context, api API) apiState {
	readers := strings.Join(api.Readers, ", ")
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, api.Resource.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return apiState{problem: fmt.Sprintf("%s, read by %s, cannot be discovered: %v", api, readers, err)}
	}
	if err != nil || !serves(list, api.Resource.Resource) {
		return apiState{problem: fmt.Sprintf("%s is not served%s; %s would wait for it", api, c.otherVersions(ctx, api.Resource), readers)}
	}
	for _, subresource := range api.Subresources {
		if !serves(list, api.Resource.Resource+"/"+subresource) {
			return apiState{served: true, problem: fmt.Sprintf("%s has no subresource %s, which controllers write", api, subresource)}
		}
	}
	return apiState{served: true}
}

// serves returns whether a list has the resource or subresource.
func serves(list *metav1.APIResourceList, name string) bool {
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
}

// otherVersions returns which versions of a resource are served, for a message.
func (c *checker) otherVersions(ctx context.Context, resource schema.GroupVersionResource) string {
	groups, err := c.discovery.ServerGroupsWithContext(ctx)
	if err != nil {
		return ""
	}
	var others []string
	for _, group := range groups.Groups {
		if group.Name != resource.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, version.GroupVersion)
			if err == nil && serves(list, resource.Resource) {
				others = append(others, version.Version)
			}
		}
	}
	if len(others) == 0 {
		return ""
	}
	return ", only " + strings.Join(others, ", ") + " is"
}

// idle returns the controllers, if none of them would run. A controller runs if at least one
// of its custom resources is served, or if it has none.
func (c *checker) idle(found []apiState) string {
	var waiting, running []string
	for i, api := range c.APIs {
		if builtIn := scheme.Scheme.IsVersionRegistered(api.Resource.GroupVersion()); builtIn {
			continue
		}
		if found[i].served {
			running = append(running, api.Readers...)
		} else {
			waiting = append(waiting, api.Readers...)
		}
	}
	for _, api := range c.APIs {
		for _, reader := range api.Readers {
			if slices.Contains(running, reader) || !slices.Contains(waiting, reader) {
				return ""
			}
		}
	}
	slices.Sort(waiting)
	return strings.Join(slices.Compact(waiting), ", ")
}

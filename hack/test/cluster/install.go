// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Install applies manifests/cluster and manifests/rbac of the repository at root with kubectl,
// and returns when the API server serves the custom resources.
func Install(ctx context.Context, root string,
	kubectl func(ctx context.Context, args ...string) (stdout string, err error)) error {
	names, err := kubectl(ctx, "apply", "-k", filepath.Join(root, "manifests", "cluster"), "-o", "name")
	if err != nil {
		return err
	}
	if _, err := kubectl(ctx, "apply", "-k", filepath.Join(root, "manifests", "rbac")); err != nil {
		return err
	}
	var resources []string
	for name := range strings.FieldsSeq(names) {
		if resource, ok := strings.CutPrefix(name, "customresourcedefinition.apiextensions.k8s.io/"); ok {
			resources = append(resources, resource)
		}
	}
	// The first request for a resource also makes the API server fill a cache. Until the cache
	// is full, watches fail with status 429, and the daemon retries after a second.
	gaveUp := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err = kubectl(ctx, "get", "-n", metav1.NamespaceDefault, strings.Join(resources, ","))
		return err == nil, nil
	})
	if gaveUp != nil {
		return fmt.Errorf("waiting for the custom resources: %w: %w", gaveUp, err)
	}
	return nil
}

// Install calls [Install] for this cluster and the repository that contains the working
// directory.
func (c *Cluster) Install(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	return Install(ctx, root, c.Kubectl)
}

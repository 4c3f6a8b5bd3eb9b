// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"path/filepath"
	"strings"
)

// Install applies manifests/crds and manifests/rbac of the repository at root by
// kubectl, and returns when the API server serves the custom resources.
func Install(ctx context.Context, root string, kubectl func(ctx context.Context, args ...string) (stdout string, err error)) error {
	names, err := kubectl(ctx, "apply", "-k", filepath.Join(root, "manifests", "crds"), "-o", "name")
	if err != nil {
		return err
	}
	wait := append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, strings.Fields(names)...)
	if _, err := kubectl(ctx, wait...); err != nil {
		return err
	}
	_, err = kubectl(ctx, "apply", "-k", filepath.Join(root, "manifests", "rbac"))
	return err
}

// Install is the function [Install] for this cluster and the repository that the
// working directory is in.
func (c *Cluster) Install(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	return Install(ctx, root, c.Kubectl)
}

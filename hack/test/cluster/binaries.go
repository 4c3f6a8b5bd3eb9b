// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// assetsVariable is the environment variable for a directory with prebuilt etcd,
// kube-apiserver and kubectl, known from envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Paths maps the name of a program to its absolute path.
type Paths map[string]string

// Binaries returns the paths of the named programs and builds the missing ones. Without names,
// it returns those of a control plane: etcd, kube-apiserver, kubectl, kube-controller-manager,
// kube-scheduler, kwok. Kubernetes' sample-controller, prometheus and promtool are built only
// if named.
//
// Built programs are cached in the user's cache directory, keyed by the pinned versions, at up to
// 200 MB for each version. Nothing removes them. A file lock serializes builds of the same
// programs. Programs in $KUBEBUILDER_ASSETS take precedence. $KUBERNETES selects another minor
// version of the control plane.
//
// Progress of builds is written to progress, if not nil. Nothing is written if all programs
// are cached.
func Binaries(ctx context.Context, progress io.Writer, names ...string) (Paths, error) {
	if progress == nil {
		progress = io.Discard
	}
	if len(names) == 0 {
		names = controlPlane.programs
	}
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	all, err := sets(root, os.Getenv(versionVariable))
	if err != nil {
		return nil, err
	}
	paths := Paths{}
	for _, name := range names {
		if path := filepath.Join(os.Getenv(assetsVariable), name); os.Getenv(assetsVariable) != "" && isFile(path) {
			paths[name] = path
			continue
		}
		i := slices.IndexFunc(all, func(set programSet) bool { return slices.Contains(set.programs, name) })
		if i < 0 {
			return nil, fmt.Errorf("unknown cluster program %q", name)
		}
		dir, err := ensure(ctx, progress, root, all[i])
		if err != nil {
			return nil, err
		}
		paths[name] = filepath.Join(dir, name)
	}
	return paths, nil
}

// ensure returns the directory of the set's programs, and builds them if they are missing.
func ensure(ctx context.Context, progress io.Writer, root string, set programSet) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache of cluster programs: %w", err)
	}
	key, err := cacheKey(root, set)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "sample-controller-manager", key)
	if isBuilt(dir, set) {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache of cluster programs: %w", err)
	}
	held, err := lock(ctx, filepath.Join(dir, "lock"), func() {
		fmt.Fprintf(progress, "Waiting for another process to build %s in %s\n", set.name, dir)
	})
	if err != nil {
		return "", err
	}
	defer held.Close()
	if !isBuilt(dir, set) { // another process may have built it
		if err := (builder{root: root, dir: dir, set: set, lock: held, progress: progress}).build(ctx); err != nil {
			return "", fmt.Errorf("building %s: %w", set.name, err)
		}
	}
	return dir, nil
}

func isBuilt(dir string, set programSet) bool {
	return !slices.ContainsFunc(set.programs, func(name string) bool { return !isFile(filepath.Join(dir, name)) })
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

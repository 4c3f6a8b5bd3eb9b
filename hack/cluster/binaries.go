// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// assetsVariable names a directory of ready-made etcd, kube-apiserver and kubectl; it is
// the variable that envtest users know.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Paths maps the name of a program to its absolute path.
type Paths map[string]string

// Binaries returns the named programs, or those of a control plane if none is named, and
// builds those that are missing: etcd, kube-apiserver, kubectl, kube-controller-manager,
// kube-scheduler, kwok. Kubernetes' sample-controller, prometheus and promtool are built
// only for callers that name them.
//
// Built programs are kept in the user's cache directory under a key of the pinned
// versions, and programs of versions that nobody has used for long are removed. A file
// lock serializes builds of the same programs. Programs in $KUBEBUILDER_ASSETS are
// preferred; $KUBERNETES chooses another minor version of the control plane.
// Progress, if not nil, receives what is being built; nothing is written to it when all
// programs are cached.
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
			return nil, fmt.Errorf("no program of the cluster is called %q", name)
		}
		dir, err := ensure(ctx, progress, root, all[i])
		if err != nil {
			return nil, err
		}
		paths[name] = filepath.Join(dir, name)
	}
	return paths, nil
}

// ensure returns the directory of the set's programs after building them if they are
// missing.
func ensure(ctx context.Context, progress io.Writer, root string, set programSet) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	key, err := cacheKey(root, set)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, key)
	if isBuilt(dir, set) {
		return dir, markUsed(dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache of cluster programs: %w", err)
	}
	held, err := lock(ctx, filepath.Join(dir, "lock"), func() {
		fmt.Fprintf(progress, "Waiting for another process that is building %s in %s\n", set.name, dir)
	})
	if err != nil {
		return "", err
	}
	defer held.Close()
	if !isBuilt(dir, set) { // another process may have built it during the wait
		if err := (builder{root: root, dir: dir, set: set, lock: held, progress: progress}).build(ctx); err != nil {
			return "", fmt.Errorf("building %s: %w", set.name, err)
		}
	}
	if err := markUsed(dir); err != nil {
		return "", err
	}
	return dir, removeUnused(cache)
}

func isBuilt(dir string, set programSet) bool {
	return !slices.ContainsFunc(set.programs, func(name string) bool { return !isFile(filepath.Join(dir, name)) })
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// cacheDir holds a directory for each set of programs.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache of cluster programs: %w", err)
	}
	return filepath.Join(cache, "sample-controller-manager"), nil
}

// setsKept is how many sets stay in the cache, up to 200 MB each: enough for one of each
// supported version and for two checkouts.
const setsKept = 12

// markUsed notes in the time of a set's directory that it is used now.
func markUsed(dir string) error {
	if err := os.Chtimes(dir, time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("marking cluster programs as used: %w", err)
	}
	return nil
}

// removeUnused removes the sets that were not used for longest, so that the cache does not
// grow forever.
func removeUnused(cache string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("reading the cache of cluster programs: %w", err)
	}
	used := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // another process may have removed it
			used[entry.Name()] = info.ModTime()
		}
	}
	byUse := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for _, name := range byUse[min(setsKept, len(byUse)):] {
		if err := os.RemoveAll(filepath.Join(cache, name)); err != nil {
			return fmt.Errorf("removing unused cluster programs: %w", err)
		}
	}
	return nil
}

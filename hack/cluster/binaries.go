// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// assetsVariable names a directory of ready-made etcd, kube-apiserver and
// kubectl; it is the variable that envtest users know.
const assetsVariable = "KUBEBUILDER_ASSETS"

// progressInterval is how often a build that takes long says so.
const progressInterval = 15 * time.Second

// Paths maps the name of a program to its absolute path.
type Paths map[string]string

// Binaries returns the named programs, or all of the cluster when none is named,
// after building those that are missing. Of the cluster are etcd, kube-apiserver,
// kubectl, kube-controller-manager, kube-scheduler and kwok. Kubernetes'
// sample-controller is for those who name it, with [SampleControllerCRD] beside it.
//
// What is built lies in the user's cache directory under a key of the pinned
// versions. A file lock makes those who want the same programs at the same time
// wait for one another. What $KUBEBUILDER_ASSETS holds is taken from there.
// Progress, if not nil, learns why it takes long; nothing is written to it when
// all is cached.
func Binaries(ctx context.Context, progress io.Writer, names ...string) (Paths, error) {
	if progress == nil {
		progress = io.Discard
	}
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	wanted, err := wantedTools(names)
	if err != nil {
		return nil, err
	}
	paths := Paths{}
	for _, set := range [][]tool{tools, peers} {
		wantedOfSet := slices.DeleteFunc(slices.Clone(wanted), func(t tool) bool { return !slices.Contains(set, t) })
		if len(wantedOfSet) == 0 {
			continue
		}
		dir, err := cacheDir(root, set)
		if err != nil {
			return nil, err
		}
		found, err := ensure(ctx, progress, root, dir, wantedOfSet)
		if err != nil {
			return nil, err
		}
		maps.Copy(paths, found)
	}
	return paths, nil
}

// ensure returns the wanted programs after building into dir those that are missing.
func ensure(ctx context.Context, progress io.Writer, root, dir string, wanted []tool) (Paths, error) {
	paths, missing := locate(wanted, dir, os.Getenv(assetsVariable))
	if len(missing) == 0 {
		return paths, nil
	}

	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache of cluster binaries: %w", err)
	}
	held, err := lock(ctx, filepath.Join(dir, "lock"), func() {
		fmt.Fprintf(progress, "waiting for another process that is building the cluster's programs in %s\n", dir)
	})
	if err != nil {
		return nil, err
	}
	defer held.Close()
	// Another process may have built them while this one waited.
	if paths, missing = locate(wanted, dir, os.Getenv(assetsVariable)); len(missing) == 0 {
		return paths, nil
	}
	fmt.Fprintf(progress, "building the cluster's programs: once, about 6 minutes for all on 2 cores, then cached in %s\n", dir)
	b := builder{root: root, dir: dir, lock: held, progress: progress}
	for i, t := range missing {
		if err := b.build(ctx, t, fmt.Sprintf("%d of %d", i+1, len(missing))); err != nil {
			return nil, err
		}
		paths[t.name] = filepath.Join(dir, t.name)
	}
	return paths, nil
}

// cacheDir returns where these programs lie in this checkout's pinned versions.
func cacheDir(root string, set []tool) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache of cluster binaries: %w", err)
	}
	key, err := cacheKey(root, set)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "sample-controller-manager", key), nil
}

func wantedTools(names []string) ([]tool, error) {
	if len(names) == 0 {
		return tools, nil
	}
	known := slices.Concat(tools, peers)
	var wanted []tool
	for _, name := range names {
		i := slices.IndexFunc(known, func(t tool) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no program of the cluster is called %q", name)
		}
		wanted = append(wanted, known[i])
	}
	return wanted, nil
}

// locate finds programs in the assets directory, if there is one, and in dir.
func locate(wanted []tool, dir, assets string) (found Paths, missing []tool) {
	found = Paths{}
	for _, t := range wanted {
		places := []string{filepath.Join(dir, t.name)}
		if assets != "" {
			places = slices.Insert(places, 0, filepath.Join(assets, t.name))
		}
		i := slices.IndexFunc(places, func(place string) bool {
			info, err := os.Stat(place)
			return err == nil && info.Mode().IsRegular()
		})
		if i < 0 {
			missing = append(missing, t)
			continue
		}
		found[t.name] = places[i]
	}
	return found, missing
}

// builder builds tools of the checkout at root into dir, which lock guards.
type builder struct {
	root, dir string
	lock      *os.File
	progress  io.Writer
}

// build adds one program to the cache. It appears there only when complete, and
// after its companion.
func (b builder) build(ctx context.Context, t tool, ordinal string) error {
	version, err := b.goCommand(ctx, t, "list", "-m", "-f", "{{.Version}}", t.source)
	if err != nil {
		return err
	}
	start := time.Now()
	fmt.Fprintf(b.progress, "  building %s %s (%s)\n", t.name, version, ordinal)
	defer reportEvery(progressInterval, func() {
		fmt.Fprintf(b.progress, "  still building %s, %s so far\n", t.name, time.Since(start).Round(time.Second))
	})()

	if err := b.copyCompanion(ctx, t); err != nil {
		return err
	}
	partial := filepath.Join(b.dir, t.name+".partial")
	defer os.Remove(partial)
	args := append([]string{"build"}, buildFlags...)
	args = append(args, "-ldflags", t.ldflags(version), "-o", partial, t.pkg)
	if _, err := b.goCommand(ctx, t, args...); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(b.dir, t.name))
}

// copyCompanion joins the parts of the file that lies beside the tool, if one does.
func (b builder) copyCompanion(ctx context.Context, t tool) error {
	companion, ok := companions[t.name]
	if !ok {
		return nil
	}
	source, err := b.goCommand(ctx, t, "list", "-m", "-f", "{{.Dir}}", t.source)
	if err != nil {
		return err
	}
	var parts [][]byte
	for _, name := range companion.parts {
		part, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("reading a part of %s: %w", companion.name, err)
		}
		parts = append(parts, part)
	}
	return os.WriteFile(filepath.Join(b.dir, companion.name), bytes.Join(parts, []byte("---\n")), 0o644)
}

// goCommand runs the go command in the tool's module and returns its output. An
// interrupt, unlike a kill, lets it remove its own temporary files.
func (b builder) goCommand(ctx context.Context, t tool, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = toolsModule(b.root, t.module)
	cmd.Env = append(os.Environ(), buildEnv...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// If this process is killed, the build may go on; it must not meet the next.
	cmd.ExtraFiles = []*os.File{b.lock}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("building %s: %w", t.name, context.Cause(ctx))
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("building %s: %w (the go command must be on the PATH)", t.name, err)
	}
	if err != nil {
		return "", fmt.Errorf("building %s: go %s: %w\n%s", t.name, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// reportEvery calls report at intervals until the returned function is called,
// which waits for a call under way.
func reportEvery(interval time.Duration, report func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

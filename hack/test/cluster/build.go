// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// progressInterval is how often a long build reports progress.
const progressInterval = 15 * time.Second

// builder builds a set of the checkout at root into dir, which is protected by lock.
type builder struct {
	root, dir string
	set       programSet
	lock      *os.File
	progress  io.Writer
}

// build builds the set's programs. Each program appears in dir only once it is complete.
func (b builder) build(ctx context.Context) error {
	version, err := pinnedVersion(b.root, b.set)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "Building %s (%s %s): takes about %s on 2 idle cores, then cached in %s\n",
		b.set.name, b.set.source, version, b.set.duration, b.dir)
	module := moduleDir(b.root, b.set)
	if b.set.version != "" {
		module = filepath.Join(b.dir, "module")
		defer os.RemoveAll(module)
		if err := b.writeModule(ctx, module); err != nil {
			return err
		}
	}
	partial := filepath.Join(b.dir, "partial")
	if err := errors.Join(os.RemoveAll(partial), os.Mkdir(partial, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := b.compile(ctx, module, partial, version); err != nil {
		return err
	}
	return b.publish(partial)
}

// compile builds the set's packages into a directory.
func (b builder) compile(ctx context.Context, module, output, version string) error {
	args := append([]string{"build", "-tags=" + b.set.tags, "-ldflags=" + b.set.ldflags(version), "-o", output + "/"}, buildFlags...)
	if b.set.version != "" {
		args = append(args, "-mod=mod") // fills go.sum from the checksum database
	}
	progressing, stop := context.WithCancel(ctx)
	var progress sync.WaitGroup
	defer progress.Wait()
	defer stop()
	began := time.Now()
	progress.Go(func() {
		wait.UntilWithContext(progressing, func(context.Context) {
			fmt.Fprintf(b.progress, "  building for %s\n", time.Since(began).Round(time.Second))
		}, progressInterval)
	})
	_, err := b.goCommand(ctx, module, append(args, b.set.packages...)...)
	return err
}

// publish moves the built programs to their final place. If a set is a single executable, its
// programs become links to it.
func (b builder) publish(partial string) error {
	built, err := os.ReadDir(partial)
	if err != nil {
		return err
	}
	for _, file := range built {
		if err := os.Rename(filepath.Join(partial, file.Name()), filepath.Join(b.dir, file.Name())); err != nil {
			return err
		}
	}
	for _, name := range b.set.programs {
		if path := filepath.Join(b.dir, name); !isFile(path) {
			if err := errors.Join(os.RemoveAll(path), os.Symlink(built[0].Name(), path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeModule writes a copy of the set's module that requires only the set's version of its
// source. All other modules then get the versions that the source requires.
func (b builder) writeModule(ctx context.Context, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(moduleDir(b.root, b.set), "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
			return err
		}
	}
	downloaded, err := b.goCommand(ctx, b.root, "mod", "download", "-json", b.set.source+"@"+b.set.version)
	if err != nil {
		return err
	}
	var source struct{ GoMod string }
	if err := json.Unmarshal([]byte(downloaded), &source); err != nil {
		return err
	}
	theirs, err := os.ReadFile(source.GoMod)
	if err != nil {
		return err
	}
	var module bytes.Buffer
	fmt.Fprintf(&module, "module x\ngo 1.26.0\ngodebug default=go1.26\nrequire %s %s\n", b.set.source, b.set.version)
	staged := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)(k8s\.io/[a-z-]+) v0\.0\.0(?:\s|$)`).FindAllStringSubmatch(string(theirs), -1) {
		if !staged[match[1]] { // the staging modules of Kubernetes v1.x.y have version v0.x.y
			fmt.Fprintf(&module, "replace %s => %[1]s v0%s\n", match[1], strings.TrimPrefix(b.set.version, "v1"))
		}
		staged[match[1]] = true
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), module.Bytes(), 0o644)
}

// goCommand runs the go command in dir and returns its output. It interrupts the command
// rather than killing it, so that the command removes its temporary files.
func (b builder) goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), buildEnv...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// If this process is killed, the build may continue. It must not overlap with the next
	// one.
	cmd.ExtraFiles = []*os.File{b.lock}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%w: the go command must be on the PATH", err)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, complaints(stderr.String()))
	}
	return stdout.String(), nil
}

// complaints returns the last lines of the go command's standard error, without the modules it
// downloads.
func complaints(stderr string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(stderr), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
	return strings.Join(lines[max(0, len(lines)-50):], "\n")
}

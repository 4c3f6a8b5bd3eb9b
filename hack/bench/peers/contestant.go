// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/bench/foo"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

const daemonName = "sample-controller-manager"

const securePort = "--secure-port="

// contestant is a program that serves Foos.
type contestant struct {
	name  string
	about string
	slow  bool // it takes minutes to serve Foos that it is only to begin with
	// build returns the path of its binary; dir is where it may build it.
	build func(ctx context.Context, root, dir string) (string, error)
	flags func(kubeconfig string) ([]string, error)
}

// contestants are all that can be chosen. The others are held against the first.
var contestants = []contestant{
	{
		name:  "daemon",
		about: fmt.Sprintf("sample-controller-manager with foo-controller alone, %d workers, elects a leader", foo.Workers),
		build: buildDaemon,
		flags: func(kubeconfig string) ([]string, error) {
			return daemonFlags(kubeconfig, "--controllers=foo-controller", fmt.Sprintf("--concurrent-foo-syncs=%d", foo.Workers))
		},
	},
	{
		name:  "twin",
		about: fmt.Sprintf("the same on controller-runtime, %d workers, elects no leader", foo.Workers),
		build: buildHere("twin"),
		flags: kubeconfigFlag,
	},
	{
		name:  "sample-controller",
		about: "Kubernetes' own, as released: 2 workers, 5 requests a second",
		slow:  true,
		build: func(ctx context.Context, _, _ string) (string, error) {
			paths, err := cluster.Binaries(ctx, os.Stderr, "sample-controller")
			return paths["sample-controller"], err
		},
		flags: kubeconfigFlag,
	},
	{
		name:  "floor",
		about: fmt.Sprintf("only the writes that cannot be avoided, %d workers", foo.Workers),
		build: buildHere("floor"),
		flags: kubeconfigFlag,
	},
	{
		name:  "whole-daemon",
		about: "sample-controller-manager as it is by default, with all its controllers; only when asked for",
		build: buildDaemon,
		flags: func(kubeconfig string) ([]string, error) { return daemonFlags(kubeconfig) },
	},
}

// serviceAccount is that of the manifests for the daemon, and one in the namespace of
// the peers for all others.
func (c contestant) serviceAccount() types.NamespacedName {
	if strings.HasSuffix(c.name, "daemon") {
		return types.NamespacedName{Namespace: daemonName, Name: daemonName}
	}
	return types.NamespacedName{Namespace: peersNamespace, Name: c.name}
}

// choose returns the contestants of these names.
func choose(names string) ([]contestant, error) {
	var chosen []contestant
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(contestants, func(c contestant) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no contestant %q; there are: %s", name, strings.Join(namesOf(contestants), ", "))
		}
		chosen = append(chosen, contestants[i])
	}
	return chosen, nil
}

func floor() contestant {
	i := slices.IndexFunc(contestants, func(c contestant) bool { return c.name == "floor" })
	return contestants[i]
}

func namesOf(contestants []contestant) []string {
	var names []string
	for _, c := range contestants {
		names = append(names, c.name)
	}
	return names
}

// kubeconfigFlag is what all but the daemon take.
func kubeconfigFlag(kubeconfig string) ([]string, error) {
	return []string{"-kubeconfig=" + kubeconfig}, nil
}

func daemonFlags(kubeconfig string, more ...string) ([]string, error) {
	// Its usual port may be taken.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect-resource-namespace=" + daemonName,
		"--bind-address=127.0.0.1", fmt.Sprintf("%s%d", securePort, listener.Addr().(*net.TCPAddr).Port),
	}, more...), nil
}

// secureAddress is where a daemon with these flags serves, "" where none does.
func secureAddress(flags []string) string {
	for _, flag := range flags {
		if port, ok := strings.CutPrefix(flag, securePort); ok {
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	return ""
}

// buildDaemon builds the daemon as a user does.
func buildDaemon(ctx context.Context, root, dir string) (string, error) {
	path := filepath.Join(dir, daemonName)
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "build.sh"))
	cmd.Env = append(os.Environ(), "OUTPUT="+path)
	return path, output(cmd)
}

// buildHere builds a package of this module in the same way.
func buildHere(name string) func(ctx context.Context, root, dir string) (string, error) {
	return func(ctx context.Context, root, dir string) (string, error) {
		path := filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./"+name)
		cmd.Dir = filepath.Join(root, "hack", "bench")
		cmd.Env = append(os.Environ(), "GOWORK=off")
		return path, output(cmd)
	}
}

// output runs a command whose output matters only if it fails.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

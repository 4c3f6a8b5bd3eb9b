// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const daemonName = "sample-controller-manager"

// peers is the namespace of the ServiceAccounts of all candidates except the daemon.
const peers = "peers"

// candidate is a program that reconciles Foos.
type candidate struct {
	name   string
	binary string // in the directory of the binaries
	daemon bool   // has the daemon's flags and ServiceAccount
	flags  []string
}

// candidates are all candidates.
var candidates = []candidate{
	{name: "daemon", binary: daemonName, daemon: true, flags: []string{"--controllers=foo-controller", "--concurrent-foo-syncs=10"}},
	{name: "controller-runtime", binary: "controllerruntime"},
	{name: "all-controllers", binary: daemonName, daemon: true},
	{name: "controller-runtime-elector", binary: "controllerruntime", flags: []string{"--leader-elect-namespace=" + peers}},
}

func chooseCandidates(names string) ([]candidate, error) {
	return choose("candidate", candidates, func(c candidate) string { return c.name }, names)
}

// serviceAccount returns the namespace and name of the candidate's ServiceAccount.
func (c candidate) serviceAccount() (namespace, name string) {
	if c.daemon {
		return daemonName, daemonName
	}
	return peers, c.name
}

// user returns the candidate's user name in the audit log.
func (c candidate) user() string {
	namespace, name := c.serviceAccount()
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name)
}

// build builds the daemon as users do, and the programs of this module with the same flags.
func build(ctx context.Context, root, dir string) error {
	daemon := exec.CommandContext(ctx, filepath.Join(root, "hack", "build.sh"))
	daemon.Env = append(os.Environ(), "OUTPUT="+filepath.Join(dir, daemonName))
	others := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", dir+"/", "./...")
	others.Dir = filepath.Join(root, "hack", "tools", "bench")
	others.Env = append(os.Environ(), "GOWORK=off")
	for _, cmd := range []*exec.Cmd{daemon, others} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}
	return nil
}

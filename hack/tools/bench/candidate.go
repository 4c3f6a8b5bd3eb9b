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

	"samplecontroller.io/sample-controller-manager/hack/tools/bench/foo"
)

const daemonName = "sample-controller-manager"

// peers is the namespace of the ServiceAccounts of all candidates except the daemon.
const peers = "peers"

// candidate is a program that reconciles Foos.
type candidate struct {
	name   string
	binary string // in the directory of the binaries
	daemon bool   // has the daemon's flags, ServiceAccount and pages
	flags  []string
}

var fooController = []string{"--controllers=foo-controller", fmt.Sprintf("--concurrent-foo-syncs=%d", foo.Workers)}

// candidates are all candidates.
var candidates = []candidate{
	{name: "daemon", binary: daemonName, daemon: true, flags: fooController},
	{name: "controller-runtime", binary: "controllerruntime"},
	{name: "lower-bound", binary: "lowerbound"},
	{name: "all-controllers", binary: daemonName, daemon: true},
	{name: "client-go-elector", binary: "lowerbound", flags: []string{"--leader-elect-resource-namespace=" + peers}},
}

func chooseCandidates(names string) ([]candidate, error) {
	return choose("candidate", candidates, func(c candidate) string { return c.name }, names)
}

func lowerBound() candidate     { return candidates[2] }
func allControllers() candidate { return candidates[3] }

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

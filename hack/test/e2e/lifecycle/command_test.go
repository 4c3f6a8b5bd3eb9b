// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestVersionFromGit(t *testing.T) {
	stdout, _, code := framework.RunCommand(t, "--version")
	if code != 0 || !regexp.MustCompile(`^sample-controller-manager v\d+\.\d+\.\d+\S*\n$`).MatchString(stdout) {
		t.Errorf("--version: output %q, exit code %d", stdout, code)
	}
	version := regexp.QuoteMeta(strings.TrimSpace(strings.TrimPrefix(stdout, "sample-controller-manager v")))
	r := framework.StartReplica(t)
	clustertest.WaitUntil(t, "/statusz shows the version", func(ctx context.Context) error {
		_, page, err := r.GetAs(ctx, r.Admin(), "/statusz")
		if err == nil && !regexp.MustCompile(`\nBinary version\W+`+version+`\s`).MatchString(page) {
			err = errors.New(page)
		}
		return err
	})
	r.Stop()
}

func TestControllersCommandWithoutCluster(t *testing.T) {
	stdout, _, code := framework.RunCommand(t, "controllers")
	const want = `
NAME                           ALIASES             DEFAULT   WORKERS   RESOURCES
foo-controller                 foo                 on        10        deployments.apps,foos.samplecontroller.k8s.io
icecream-controller            icecream            on        10        pods,deployments.apps,replicasets.apps,icecreams.controller.nicoleh.io
status-aggregator-controller   status-aggregator   on        10        pods,deployments.apps,replicasets.apps,icecreams.controller.nicoleh.io,foos.samplecontroller.k8s.io
`
	got := stdout
	for _, d := range app.Program().Controllers {
		if !strings.Contains(want, "\n"+d.Name+" ") { // not one of ours
			got = regexp.MustCompile("(?m)^"+d.Name+" .*\n").ReplaceAllString(got, "")
		}
	}
	if code != 0 || got != want[1:] {
		t.Errorf("controllers: output\n%s, exit code %d, want\n%s", stdout, code, want)
	}
}

// TestInvalidFlags checks the exit code and the output. The tests of the options and of
// package manager check the messages.
func TestInvalidFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"not parsed": {[]string{"-kubeconfig=x"}, []string{"write it with two dashes, --kubeconfig"}},
		"not valid":  {[]string{"--controllers=fooo-controller", "--secure-port=70000"}, []string{"--controllers", "(known: foo, foo-controller, ", "--secure-port"}},
		"not usable": {[]string{"--kubeconfig=/does/not/exist"}, []string{"--kubeconfig: ", "/does/not/exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := framework.RunCommand(t, test.args...)
			if code != 1 || stdout != "" || strings.Contains(stderr, "goroutine ") || strings.Contains(stderr, "Usage:") {
				t.Errorf("exit code %d, want 1; standard output %q, want none; standard error, want no stack and no usage:\n%s", code, stdout, stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in:\n%s", want, stderr)
				}
			}
		})
	}
}

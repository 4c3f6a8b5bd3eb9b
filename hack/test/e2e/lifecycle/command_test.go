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

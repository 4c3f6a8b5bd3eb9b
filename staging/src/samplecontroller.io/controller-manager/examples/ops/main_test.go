// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/controller-manager/examples/ops/vault"
	"samplecontroller.io/controller-manager/managertest"
)

// run runs a test in memory, or on a real API server if TEST_KUBECONFIG is set.
func run(t *testing.T, v *vault.Fake, body func(*testing.T, *managertest.Env), args ...string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("TEST_KUBECONFIG"))
	if os.Getenv("TEST_KUBECONFIG") == "" {
		managertest.Run(t, program(v), body, args...)
	} else if err != nil {
		t.Fatal(err)
	} else {
		managertest.RunOn(t, config, program(v), body, args...)
	}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

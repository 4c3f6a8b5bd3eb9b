// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/controller-manager/managertest"
)

// run runs a test in memory, or on a real API server if TEST_KUBECONFIG is set.
func run(t *testing.T, body func(*testing.T, *managertest.Env)) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("TEST_KUBECONFIG"))
	if os.Getenv("TEST_KUBECONFIG") == "" {
		managertest.Run(t, program(), body)
	} else if err != nil {
		t.Fatal(err)
	} else {
		managertest.RunOn(t, config, program(), body, "--namespace=quota")
	}
}

// hardPods returns the limit of Pods in the ResourceQuota, or "none" if there is no quota.
func hardPods(e *managertest.Env) string {
	if quota, ok := managertest.Get[*corev1.ResourceQuota](e, "quota", "team"); ok {
		return quota.Spec.Hard.Pods().String()
	}
	return "none"
}

// The README contains main.go in full, and promises that it is short.
func TestReadmeShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	if diff := cmp.Diff(string(program), shown); diff != "" {
		t.Errorf("README.md differs from examples/quota/main.go: copy it (-main.go +README.md):\n%s", diff)
	}
	_, body, _ := strings.Cut(string(program), "\n)\n") // after the imports
	if lines := strings.Count(body, "\n"); lines > 60 {
		t.Errorf("main.go has %d lines after its imports, want at most 60", lines)
	}
}

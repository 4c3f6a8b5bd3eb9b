// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

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

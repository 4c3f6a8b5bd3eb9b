// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPreflightHasFlagsOfPod has a Pod like that of the component single-namespace, with a sidecar.
func TestPreflightHasFlagsOfPod(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "sidecar", Args: []string{"--other"}},
		{Name: Daemon, Args: []string{"--v=2", "--namespace=$(SERVED_NAMESPACE)"}, Env: []corev1.EnvVar{{Name: "SERVED_NAMESPACE", Value: "team-a"}}},
	}}}
	want := []string{"/sample-controller-manager", "preflight", "--output=json", "--v=2", "--namespace=team-a"}
	if got := preflightCommand(pod); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	pod.Spec.Containers[1].Command = []string{"/bin/daemon"}
	if got := preflightCommand(pod); got[0] != "/bin/daemon" || len(got) != len(want) {
		t.Errorf("with a command: %q", got)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// patience is for a machine that is busy with other things: what is waited for takes
// seconds.
const patience = 2 * time.Minute

// WaitUntil waits until check returns nil, and fails the test with its last error if
// patience ends. An error that came only because of that would say nothing: the one
// before does.
func WaitUntil(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err == nil || last == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}

// NewNamespace makes a namespace that only this test uses, and returns its name.
func NewNamespace(t *testing.T, kube kubernetes.Interface) string {
	t.Helper()
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

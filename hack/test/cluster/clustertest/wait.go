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

// waitTimeout allows for a busy machine: what tests wait for normally takes seconds.
const waitTimeout = 5 * time.Minute

// WaitUntil waits until check returns nil. After five minutes it fails the test with the last
// error of check and the time since check has returned that error. It ignores the error of a
// check that ran out of time, because it would hide the one before.
func WaitUntil(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	WaitWithin(t, waitTimeout, what, check)
}

// WaitWithin is [WaitUntil] with another timeout.
func WaitWithin(t *testing.T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	began := time.Now()
	var last error
	var since time.Time
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true,
		func(ctx context.Context) (bool, error) {
			err := check(ctx)
			if err == nil {
				return true, nil
			}
			if last == nil || ctx.Err() == nil && err.Error() != last.Error() {
				last, since = err, time.Now()
			}
			return false, nil
		})
	if err != nil {
		now := time.Now()
		t.Fatalf("waiting until %s: timed out %v after %s; the error since %s: %v", what,
			now.Sub(began).Round(time.Second), began.Format(time.TimeOnly), since.Format(time.TimeOnly), last)
	}
}

// Long skips a test in short mode.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: runs in make test-all")
	}
}

// NewNamespace creates a namespace for this test and returns its name.
func NewNamespace(t *testing.T, kube kubernetes.Interface) string {
	t.Helper()
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

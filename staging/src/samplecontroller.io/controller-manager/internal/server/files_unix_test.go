// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package server

import (
	"syscall"
	"testing"
)

func TestLimitOnFilesLimitsConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 400, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	if got := newConfig(t).SecureServing.Listener.(*connectionLimiter); len(got.accepted) != 100 {
		t.Errorf("a process that may open 400 files accepts %d connections, want 100", len(got.accepted))
	}
}

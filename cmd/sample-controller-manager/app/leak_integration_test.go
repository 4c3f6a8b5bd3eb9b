// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestNoGoroutineOutlivesDaemon(t *testing.T) {
	ns := newNamespace(t)
	before := goleak.IgnoreCurrent()
	server := startDaemon(t)
	foos.Create(t, ns, "a", 1)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before,
		// client-go keeps idle connections for later requests of the process.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"))
}

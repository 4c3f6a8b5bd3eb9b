// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestPainterColorsWords(t *testing.T) {
	var painted strings.Builder
	w := painter{&painted}
	fmt.Fprintln(w, "foo-controller  Degraded  3s")
	fmt.Fprintln(w, "bar-controller  Running   NotRunningAtAll")
	want := "foo-controller  \x1b[31mDegraded\x1b[0m  3s\nbar-controller  \x1b[32mRunning\x1b[0m   NotRunningAtAll\n"
	if painted.String() != want {
		t.Errorf("got %q, want %q", painted.String(), want)
	}
}

// TestNoColorsInPipe writes to something that is no terminal.
func TestNoColorsInPipe(t *testing.T) {
	var plain strings.Builder
	fmt.Fprint(newPainter(&plain), "Degraded")
	if plain.String() != "Degraded" {
		t.Errorf("got %q", plain.String())
	}
}

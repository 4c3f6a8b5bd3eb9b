// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// output records what is printed, and closes appeared once it contains until.
type output struct {
	mu       sync.Mutex
	text     strings.Builder
	until    string
	appeared chan struct{}
}

func newOutput(until string) *output {
	return &output{until: until, appeared: make(chan struct{})}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := strings.Contains(o.text.String(), o.until)
	o.text.Write(p)
	if !before && strings.Contains(o.text.String(), o.until) {
		close(o.appeared)
	}
	return os.Stderr.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// runWhy runs the printed command that explains the Foo verbatim.
func runWhy(t *testing.T, printed string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^  (bin/kubectl-scm why .*)$`).FindStringSubmatch(printed)
	if line == nil {
		t.Error("no such command in the output")
		return
	}
	why := exec.CommandContext(t.Context(), "sh", "-c", line[1])
	why.Dir = filepath.Join("..", "..", "..")
	if answer, err := why.CombinedOutput(); err != nil || !strings.HasPrefix(string(answer), "default/"+example+": foo-controller is Running\n") {
		t.Errorf("%s: %v\n%s", line[1], err, answer)
	}
}

// TestRun does what a user does with `make run`, including Ctrl-C.
func TestRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newOutput("Ctrl-C stops everything")
	done := make(chan error, 1)
	go func() { done <- run(ctx, out, "") }()

	select {
	case <-out.appeared:
		runWhy(t, out.String())
	case err := <-done:
		t.Fatalf("run ended early: %v", err)
	case <-time.After(15 * time.Minute): // the daemon may have to be compiled first
		t.Error("timed out")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopping: %v", err)
	}

	text := out.String()
	for _, want := range []string{
		"foo.samplecontroller.k8s.io/" + example,
		"deployment.apps/" + example,
		"1/1     Running",
		"export KUBECONFIG=",
		"nothing is left behind",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
	if strings.Contains(text, "eyJ") {
		t.Error("the output contains a token")
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// What happens to the pipe that the log is written to.
const (
	neverRead = iota
	readLater // before the daemon ends
	closed
)

// TestUnreadLogStopsNothing makes the leader log to a full pipe.
func TestUnreadLogStopsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		pipe  int
	}{
		"by default":                      {nil, readLater},
		"in JSON":                         {[]string{"--logging-format=json"}, readLater},
		"each sync is logged":             {[]string{"-v=4"}, readLater},
		"each sync is logged, never read": {[]string{"-v=4"}, neverRead},
		"the reader is gone":              {[]string{"-v=4"}, closed},
	} {
		t.Run(name, func(t *testing.T) {
			const pods = 30 // more than workers
			all := sideBySide(t)
			log, stderr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			stop := startLoggingTo(t, stderr, test.flags...)
			waitHolder(t, "")
			fill(t, stderr)
			stderr.Close() // the daemon has it
			if test.pipe == closed {
				log.Close()
			}
			for _, k := range all {
				for i := range pods {
					name := fmt.Sprintf("a-%d", i)
					rs := k.createServed(t, k.ns, name)
					createPod(t, k.ns, name, "node-1", k.labels(name), controlledBy(rs))
				}
				for i := range pods {
					k.waitPods(t, k.ns, fmt.Sprintf("a-%d", i), "1/1 ready on node-1")
					if k.Kind == icecreams.Kind {
						waitPlacements(t, k.ns, fmt.Sprintf("a-%d", i), 1)
					}
				}
			}

			holder := waitHolder(t, "")
			startDaemon(t)
			var placed atomic.Int32
			read := make(chan string, 1)
			if test.pipe == readLater {
				go func() { read <- readLines(log, &placed) }()
				// At its end the daemon waits 3 s for a reader. Little must be left to read
				// by then, even on a busy machine.
				clustertest.WaitUntil(t, "the placements are read", func(context.Context) error {
					if got := placed.Load(); got < pods {
						return fmt.Errorf("%d of %d", got, pods)
					}
					return nil
				})
			}
			stop()
			waitHolder(t, holder)
			for _, k := range all {
				k.createServed(t, k.ns, "b")
			}
			if test.pipe != readLater {
				return
			}
			content := <-read
			if got := placed.Load(); got != pods {
				t.Errorf("%d placements logged, want %d", got, pods)
			}
			if last := "Stopped controller"; strings.Count(content, last) != 3 {
				t.Errorf("the end of the log is lost, want %q three times in:\n%s", last, content[max(0, len(content)-2000):])
			}
		})
	}
}

// readLines reads a log until the daemon has ended, and counts the placements in it.
func readLines(log io.Reader, placed *atomic.Int32) string {
	var content strings.Builder
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadString('\n')
		content.WriteString(strings.ReplaceAll(line, "\x00", ""))
		if strings.Contains(line, "Pod scheduled") {
			placed.Add(1)
		}
		if err != nil {
			return content.String()
		}
	}
}

// fill fills a pipe, so that writers to it block.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	// Another open file description: the flags of this one are shared with the daemon.
	pipe, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", pipe.Fd()), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	for _, size := range []int{4096, 1} {
		for {
			if err := pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			_, err := pipe.Write(make([]byte, size))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// waitHolder waits until another process than the given holder leads, and returns it.
func waitHolder(t *testing.T, but string) (holder string) {
	t.Helper()
	clustertest.WaitUntil(t, "the Lease is held by another", func(context.Context) error {
		if holder = ptr.Deref(lease(t).Spec.HolderIdentity, ""); holder == "" || holder == but {
			return fmt.Errorf("held by %q", holder)
		}
		return nil
	})
	return holder
}

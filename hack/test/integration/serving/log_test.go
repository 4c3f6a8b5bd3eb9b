// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestUnreadLogStopsNothing makes the leader log to a full pipe. What becomes of the lines is tested in
// internal/logwriter.
func TestUnreadLogStopsNothing(t *testing.T) {
	for name, isRead := range map[string]bool{"never read": false, "read before the end": true} {
		t.Run(name, func(t *testing.T) {
			const objects = 12 // of each kind: more than workers
			all := framework.SideBySide(t)
			log, stderr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName,
				framework.DaemonName)
			if err != nil {
				t.Fatal(err)
			}
			flags := append(framework.ReplicaFlags(kubeconfig, framework.FreePort(t)), "-v=4", "--logging-format=json")
			leader := framework.StartProgramTo(t, stderr, framework.Binary(), flags...)
			framework.WaitLeader(t, "")
			fill(t, stderr)
			stderr.Close() // the daemon has it
			for _, k := range all {
				for i := range objects {
					k.Create(t, k.Ns, fmt.Sprintf("a-%d", i), 1)
				}
				for i := range objects {
					k.WaitCondition(t, k.Ns, fmt.Sprintf("a-%d", i), "Reconciling", "Progressing")
				}
			}

			holder := framework.WaitLeader(t, "")
			framework.StartDaemon(t)
			var created atomic.Int32
			read := make(chan string, 1)
			if isRead {
				go func() { read <- readLines(log, all, &created) }()
				// At its end the daemon waits 3 s for a reader. Little must be left to read
				// by then, even on a busy machine.
				clustertest.WaitUntil(t, "the creations are read", func(context.Context) error {
					if got := created.Load(); got < 2*objects {
						return fmt.Errorf("%d of %d", got, 2*objects)
					}
					return nil
				})
			}
			leader.Stop()
			framework.WaitLeader(t, holder)
			for _, k := range all {
				k.Create(t, k.Ns, "b", 1)
				k.WaitReplicas(t, k.Ns, "b", 1)
			}
			if !isRead {
				return
			}
			content := <-read
			if got := created.Load(); got != 2*objects {
				t.Errorf("%d creations logged, want %d", got, 2*objects)
			}
			if last := "Stopped controller"; strings.Count(content, last) != 3 {
				t.Errorf("the end of the log is lost, want %q three times in:\n%s", last, content[max(0, len(content)-2000):])
			}
		})
	}
}

// readLines reads a log until the daemon has ended, and counts the Deployments that it says were created.
func readLines(log io.Reader, all []framework.InNamespace, created *atomic.Int32) string {
	var content strings.Builder
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadString('\n')
		content.WriteString(strings.ReplaceAll(line, "\x00", ""))
		if strings.Contains(line, "Created object") && slices.ContainsFunc(all, func(k framework.InNamespace) bool {
			return strings.Contains(line, k.Ns)
		}) {
			created.Add(1)
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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Log says which part of a log to read.
type Log struct {
	Follow bool
	// Since is the age of the oldest lines, 0 for all. Tail is the number of lines, negative for all.
	Since time.Duration
	Tail  int64
}

// CopyLog copies the log of a Pod of the daemon until the log or ctx ends. A log that is followed also ends if it
// breaks off: its node may have failed.
func (c *Cluster) CopyLog(ctx context.Context, pod string, l Log, w io.Writer) error {
	options := &corev1.PodLogOptions{Container: Daemon, Follow: l.Follow}
	if l.Since > 0 {
		options.SinceSeconds = ptr.To(max(int64(l.Since.Seconds()), 1))
	}
	if l.Tail >= 0 {
		options.TailLines = &l.Tail
	}
	stream, err := c.client.CoreV1().Pods(c.options.DaemonNamespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("reading the log of Pod %s/%s: %w", c.options.DaemonNamespace, pod, c.withAdvice(err))
	}
	defer stream.Close()
	if _, err := io.Copy(w, stream); err != nil && !l.Follow {
		return fmt.Errorf("reading the log of Pod %s/%s: %w", c.options.DaemonNamespace, pod, err)
	}
	return nil
}

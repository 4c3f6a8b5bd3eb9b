// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// varying matches what differs between lines with the same cause.
var varying = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F.]*|repeated=\S+|(retries|milliseconds|after)=\S+`)

// TestErrorsDoNotFloodLog makes the API server unavailable to a leader while clients probe its
// port, and request metrics without valid credentials.
func TestErrorsDoNotFloodLog(t *testing.T) {
	const floodLasts = 35 * time.Second // how long everything fails at once
	framework.FreeLease(t)
	link := clustertest.StartLink(t, framework.Cluster())
	// In a namespace without objects, because objects of other tests would be additional
	// causes.
	r := framework.StartReplicaWith(t, link.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName),
		append(framework.ShortLease, "--namespace="+framework.NewNamespace(t))...).Ready()
	r.WaitLog("Starting workers")
	admin := framework.DebuggerToken(t, framework.NewNamespace(t))
	before := len(r.Log.String())

	ctx, cancel := context.WithTimeout(t.Context(), floodLasts)
	defer cancel()
	var happened atomic.Int64
	var all sync.WaitGroup
	for period, happen := range map[time.Duration]func(i int){
		10 * time.Millisecond: func(int) { // a probe without TLS
			if connection, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "https://")); err == nil {
				fmt.Fprint(connection, "GET / HTTP/1.0\r\n\r\n")
				connection.Close()
			}
		},
		50 * time.Millisecond:  func(int) { link.Cut() },
		100 * time.Millisecond: func(i int) { _, _, _ = r.GetAs(ctx, fmt.Sprintf("%s%d", admin, i), "/metrics") },
		time.Second:            func(int) { _, _, _ = r.GetAs(ctx, admin, "/metrics") },
	} {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				happen(i)
				happened.Add(1)
				select {
				case <-ctx.Done():
				case <-time.After(period):
				}
			}
		})
	}
	all.Wait()

	lines := strings.Split(strings.TrimSpace(r.Log.String()[before:]), "\n")
	causes := map[string]int{}
	for _, line := range lines {
		if _, text, ok := strings.Cut(line, "] "); ok && line[0] == 'E' {
			causes[varying.ReplaceAllString(text, "#")]++
		}
	}
	most := 1 + int(floodLasts/(10*time.Second))
	errors := 0
	for cause, count := range causes {
		errors += count
		if count > most {
			t.Errorf("%d lines in %v, want at most %d, of: %s", count, floodLasts, most, cause)
		}
	}
	t.Logf("%d faults, %d lines in %v, %d of them errors, with %d causes", happened.Load(), len(lines), floodLasts, errors, len(causes))
	if errors == 0 {
		t.Error("nothing failed")
	}
	// Not per unit of time: how often the Lease is lost and taken again depends on the
	// machine.
	if most := int(happened.Load() / 10); len(lines) > most {
		t.Errorf("%d lines for %d faults, want at most %d", len(lines), happened.Load(), most)
	}
	r.Ready().Stop()
}

// TestOutageAtStartDoesNotFloodLog starts a replica without an API server. Each of its
// informers fails once a second.
func TestOutageAtStartDoesNotFloodLog(t *testing.T) {
	kubeconfig := clustertest.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName, func(c *clientcmdapi.Cluster) {
		c.Server = fmt.Sprintf("https://127.0.0.1:%d", framework.FreePort(t))
	})
	r := framework.StartReplicaWith(t, kubeconfig)
	started := time.Now()
	r.WaitLog(" repeated=")
	most := 1 + int(time.Since(started)/(10*time.Second))
	if lines := strings.Count(r.Log.String(), "API server cannot be reached"); lines < 2 || lines > most {
		t.Errorf("%d lines in %v, want 2 to %d:\n%s", lines, time.Since(started), most, r.Log)
	}
	r.Stop()
}

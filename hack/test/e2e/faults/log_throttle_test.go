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

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

var (
	// varying matches what differs between lines with the same cause.
	varying = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F.]*|repeated=\S+|(retries|milliseconds|after)=\S+`)
	// object matches a value that names an object.
	object = regexp.MustCompile(`\w+="[^"/ ]+/[^"/ ]+"`)
)

// wantThrottled checks that no error about an object was logged more than once in ten seconds since the beginning of
// the log. It returns the number of errors and that of their causes.
func wantThrottled(t *testing.T, log string, began time.Time) (errors, causes int) {
	t.Helper()
	lasted := time.Since(began)
	byCause := map[string]int{}
	for line := range strings.Lines(log) {
		if _, text, ok := strings.Cut(line, "] "); ok && line[0] == 'E' {
			byCause[varying.ReplaceAllString(text, "#")+strings.Join(object.FindAllString(text, -1), " ")]++
		}
	}
	most := 1 + int(lasted/(10*time.Second))
	for cause, count := range byCause {
		errors += count
		if count > most {
			t.Errorf("%d lines in %v, want at most %d, of: %s", count, lasted, most, cause)
		}
	}
	return errors, len(byCause)
}

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
	before, began := len(r.Log.String()), time.Now()

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

	log := r.Log.String()[before:]
	errors, causes := wantThrottled(t, log, began)
	lines := strings.Count(log, "\n")
	t.Logf("%d faults, %d lines in %v, %d of them errors, with %d causes",
		happened.Load(), lines, floodLasts, errors, causes)
	if errors == 0 {
		t.Error("nothing failed")
	}
	// There are 80 lines for 4,000 faults. A slow machine has fewer faults, not fewer lines.
	if lines > 400 {
		t.Errorf("%d lines for %d faults, want at most 400", lines, happened.Load())
	}
	r.Ready().Stop()
}

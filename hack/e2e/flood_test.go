// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// stormLasts is for how long all goes wrong at once.
const stormLasts = 35 * time.Second

// varying is what tells one line from the next of the same cause.
var varying = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F.]*|repeated=\S+|(retries|milliseconds|after)=\S+`)

// TestErrorsDoNotFloodTheLog takes the API server away from a leader while its port is
// probed, and while people whom nobody can identify ask for metrics.
func TestErrorsDoNotFloodTheLog(t *testing.T) {
	freeLease(t)
	link := clustertest.StartLink(t, testCluster)
	r := startReplicaWith(t, link.Kubeconfig(t, testCluster, daemonName, daemonName)).ready()
	r.waitLog("Starting workers")
	admin := debugger(t, newNamespace(t))
	before := len(r.log.String())

	ctx, cancel := context.WithTimeout(t.Context(), stormLasts)
	defer cancel()
	var all sync.WaitGroup
	for period, happen := range map[time.Duration]func(i int){
		10 * time.Millisecond: func(int) { // a probe that speaks no TLS
			if connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "https://")); err == nil {
				fmt.Fprint(connection, "GET / HTTP/1.0\r\n\r\n")
				connection.Close()
			}
		},
		50 * time.Millisecond:  func(int) { link.Cut() },
		100 * time.Millisecond: func(i int) { _, _, _ = r.getAs(ctx, fmt.Sprintf("%s%d", admin, i), "/metrics") },
		time.Second:            func(int) { _, _, _ = r.getAs(ctx, admin, "/metrics") },
	} {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				happen(i)
				select {
				case <-ctx.Done():
				case <-time.After(period):
				}
			}
		})
	}
	all.Wait()

	lines := strings.Split(strings.TrimSpace(r.log.String()[before:]), "\n")
	causes := map[string]int{}
	for _, line := range lines {
		if _, text, ok := strings.Cut(line, "] "); ok && line[0] == 'E' {
			causes[varying.ReplaceAllString(text, "#")]++
		}
	}
	most := 1 + int(stormLasts/(10*time.Second))
	errors := 0
	for cause, count := range causes {
		errors += count
		if count > most {
			t.Errorf("%d lines in %v, want at most %d, of: %s", count, stormLasts, most, cause)
		}
	}
	t.Logf("%d lines in %v, of them %d errors of %d causes", len(lines), stormLasts, errors, len(causes))
	if errors == 0 {
		t.Error("nothing went wrong")
	}
	if most := 4 * int(stormLasts/time.Second); len(lines) > most {
		t.Errorf("%d lines in %v, want at most %d", len(lines), stormLasts, most)
	}
	r.ready()
	r.stop()
}

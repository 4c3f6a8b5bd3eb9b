// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// slowLink is a TCP proxy to the API server. All its connections share its bandwidth.
type slowLink struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mutex       sync.Mutex
	rate        int // bytes per second in each direction; 0 means no limit
	latency     time.Duration
	busy        [2]time.Time // until when, in each direction
	connections []net.Conn
}

// startSlowLink starts a link without a limit. It ends with the test.
func startSlowLink(t *testing.T) *slowLink {
	t.Helper()
	server, err := url.Parse(shared.Cluster().Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &slowLink{listener: listener, target: server.Host}
	l.running.Go(l.serve)
	t.Cleanup(func() {
		listener.Close()
		l.mutex.Lock()
		for _, c := range l.connections {
			c.Close()
		}
		l.mutex.Unlock()
		l.running.Wait()
	})
	return l
}

// slowTo limits the link to rate bytes per second in each direction, and adds the latency.
func (l *slowLink) slowTo(rate int, latency time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.rate, l.latency = rate, latency
}

func (l *slowLink) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			client.Close()
			continue
		}
		l.mutex.Lock()
		l.connections = append(l.connections, client, server)
		l.mutex.Unlock()
		l.running.Go(func() { l.pass(0, client, server) })
		l.running.Go(func() { l.pass(1, server, client) })
	}
}

// chunk is the result of one read.
type chunk struct {
	content []byte
	due     time.Time
}

// pass copies from one end of a connection to the other until either ends.
func (l *slowLink) pass(direction int, from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	chunks := make(chan chunk, 10_000)
	l.running.Go(func() {
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := to.Write(c.content); err != nil {
				from.Close()
			}
		}
	})
	defer close(chunks)
	for {
		buffer := make([]byte, 1<<10)
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		chunks <- chunk{buffer[:n], l.due(direction, n)}
	}
}

// due returns when this many bytes have arrived.
func (l *slowLink) due(direction, bytes int) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	if l.rate == 0 {
		return now
	}
	if l.busy[direction].Before(now) {
		l.busy[direction] = now
	}
	l.busy[direction] = l.busy[direction].Add(time.Duration(bytes) * time.Second / time.Duration(l.rate))
	return l.busy[direction].Add(l.latency)
}

// TestSlowLinkWastesNoWrites creates objects while the daemon reaches the API server
// through a slow link.
func TestSlowLinkWastesNoWrites(t *testing.T) {
	const count = 25 // of each kind
	link, ns := startSlowLink(t), newNamespace(t)
	kubeconfig := clustertest.Kubeconfig(t, shared.Cluster(), namespace, namespace, func(cluster *clientcmdapi.Cluster) {
		cluster.Server = "https://" + link.listener.Addr().String()
	})
	startDaemon(t, "--kubeconfig="+kubeconfig, "--namespace="+ns,
		// The defaults. Writes that are abandoned because the Lease is lost do not count.
		"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s")
	kinds := []kind{foos, icecreams}
	name := func(k kind, i int) string { return fmt.Sprintf("%s-%d", k.Singular, i) }

	before := writesByResult(t)
	link.slowTo(32<<10, 150*time.Millisecond)
	for _, k := range kinds {
		for i := range count {
			k.Create(t, ns, name(k, i), 1)
		}
	}
	begin := time.Now()
	for _, k := range kinds {
		for i := range count {
			k.waitCondition(t, ns, name(k, i), "Reconciling", "Progressing")
			k.waitPods(t, ns, name(k, i), "none")
		}
	}
	took := time.Since(begin)
	link.slowTo(0, 0)
	after, all := writesByResult(t), 0
	for result := range after {
		after[result] -= before[result]
		all += after[result]
	}
	committed, err := shared.Cluster().AuditEvents(cluster.InNamespace(ns), isWork, func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && event.ResponseStatus.Code < 300
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writes were committed in %v, seen by the daemon: %v", len(committed), took, after)
	if 20*after["failed"] > all {
		t.Errorf("%d of %d writes were abandoned, want at most 5 %%", after["failed"], all)
	}
	if wasted := len(committed) - after["written"]; 20*wasted > len(committed) {
		t.Errorf("%d of %d committed writes were abandoned, want at most 5 %%", wasted, len(committed))
	}
}

// writesByResult returns the number of writes by the controllers of this process.
func writesByResult(t *testing.T) map[string]int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() != "sample_controller_manager_writes_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" {
					counts[label.GetValue()] += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return counts
}

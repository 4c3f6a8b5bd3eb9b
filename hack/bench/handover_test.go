// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// What a handover may take on a machine that does nothing else.
const (
	terminationBudget = 150 * time.Millisecond // in the median
	killBudget        = 500 * time.Millisecond // at most, after the Lease has expired
)

// standbyTime is for how long the requests of standbys are counted.
const standbyTime = time.Minute

var (
	usual   = timing{leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second, writeTimeout: 3 * time.Second}
	hurried = timing{leaseDuration: 6 * time.Second, renewDeadline: 4 * time.Second, retryPeriod: time.Second, writeTimeout: time.Second}
)

// BenchmarkHandover measures how long it takes from the end of a leader to the first
// write of the next for a change that was made just then, with 5,000 Foos cached, and
// what a standby asks of the API server, beside a peer on client-go's elector on the
// same machine at the same time. See the comment of the package.
func BenchmarkHandover(b *testing.B) {
	l := newLab(b, func(l *lab, ctx context.Context) error {
		return errors.Join(l.allowStock(ctx), l.createFoos(ctx))
	})
	var t table
	b.Run("standby", func(b *testing.B) { benchmarkStandby(b, l, &t) })
	b.Run("SIGTERM", func(b *testing.B) { benchmarkTermination(b, l, &t) })
	b.Run("kill", func(b *testing.B) { benchmarkKill(b, l, &t) })
}

// pair is both peers.
type pair struct {
	ours, stock *fleet
	ready       time.Time
}

// startPair returns when all replicas are ready.
func startPair(b *testing.B, l *lab, t timing) pair {
	b.Helper()
	var fleets []*fleet
	for _, peer := range []peer{l.stock(), l.ours()} {
		f, err := l.startFleet(b.Context(), peer, t)
		b.Cleanup(func() {
			if err := f.stop(); err != nil {
				b.Error(err)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		fleets = append(fleets, f)
	}
	return pair{stock: fleets[0], ours: fleets[1], ready: time.Now()}
}

// benchmarkStandby counts what standbys ask for, also while the leader has all Foos to
// work on.
func benchmarkStandby(b *testing.B, l *lab, t *table) {
	p := startPair(b, l, usual)
	if err := l.waitQuiet(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() { // only the first time is there something to wait for
		time.Sleep(time.Until(p.ready.Add(standbyTime)))
	}
	b.ReportMetric(0, "ns/op")
	for _, f := range []*fleet{p.ours, p.stock} {
		watches, requests, err := f.standbyRequests(p.ready)
		if err != nil {
			b.Fatal(err)
		}
		t.addStandby(f.name, watches, requests)
		b.ReportMetric(float64(watches), f.name+"-lease-watches")
		b.ReportMetric(float64(requests), f.name+"-requests/min")
	}
	b.Log(t)
}

// standbyRequests returns how many watches of the Lease the standby has opened since it
// was started, and what it has asked for in the minute after it was ready.
func (f *fleet) standbyRequests(ready time.Time) (watches, requests int, err error) {
	standby, err := f.standby()
	if err != nil {
		return 0, 0, err
	}
	inTime := func(event auditv1.Event) bool {
		at := event.RequestReceivedTimestamp.Time
		return at.After(ready) && at.Before(ready.Add(standbyTime))
	}
	ofLease := func(event auditv1.Event) bool { return event.ObjectRef != nil && event.ObjectRef.Resource == "leases" }
	opened, err := f.lab.cluster.AuditWatches(by(standby), ofLease)
	asked, askedErr := f.lab.cluster.AuditEvents(by(standby), inTime, func(event auditv1.Event) bool { return event.Verb != "watch" })
	again, againErr := f.lab.cluster.AuditWatches(by(standby), inTime)
	return len(opened), len(asked) + len(again), errors.Join(err, askedErr, againErr)
}

// benchmarkTermination ends leaders in order, ours and the peer's by turns.
func benchmarkTermination(b *testing.B, l *lab, t *table) {
	p := startPair(b, l, usual)
	if err := l.waitQuiet(b.Context()); err != nil {
		b.Fatal(err)
	}
	var ours, stock []handover
	for b.Loop() {
		for _, side := range []struct {
			*fleet
			handovers *[]handover
		}{{p.ours, &ours}, {p.stock, &stock}} {
			h, err := side.handOver(b.Context(), termination)
			if err != nil {
				b.Fatal(err)
			}
			*side.handovers = append(*side.handovers, h)
		}
	}
	t.addHandovers(b, termination, ours, stock, func(median, _ time.Duration) (time.Duration, bool) {
		return terminationBudget, median < terminationBudget
	})
	b.Log(t)
}

// benchmarkKill kills the leaders of both at once: nearly all of the time they wait.
func benchmarkKill(b *testing.B, l *lab, t *table) {
	p := startPair(b, l, hurried)
	if err := l.waitQuiet(b.Context()); err != nil {
		b.Fatal(err)
	}
	var ours, stock []handover
	for b.Loop() {
		var one, other handover
		var oneErr, otherErr error
		var both sync.WaitGroup
		both.Go(func() { one, oneErr = p.ours.handOver(b.Context(), kill) })
		both.Go(func() { other, otherErr = p.stock.handOver(b.Context(), kill) })
		both.Wait()
		if err := errors.Join(oneErr, otherErr); err != nil {
			b.Fatal(err)
		}
		ours, stock = append(ours, one), append(stock, other)
	}
	t.addHandovers(b, kill, ours, stock, func(_, most time.Duration) (time.Duration, bool) {
		return hurried.leaseDuration + killBudget, most <= hurried.leaseDuration+killBudget
	})
	b.Log(t)
}

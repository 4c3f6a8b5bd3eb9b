// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/bench/usage"
)

// quiet is for how long a contestant writes nothing before it is measured, unless it
// never rests, and for how long it is looked at after its last answer.
const quiet = 2 * time.Second

// errGaveUp is why a contestant is not measured again on a load.
var errGaveUp = errors.New("not done in time")

// result is one contestant on one load, once.
type result struct {
	Contestant string `json:"contestant"`
	Round      int    `json:"round"`
	// Changes is how many there were, and Answered how many of them were answered in
	// time.
	Changes  int `json:"changes"`
	Answered int `json:"answered"`
	// Seconds is from the first change, or from the start of a contestant that comes
	// after them, until the last answer.
	Seconds float64 `json:"seconds"`
	// P50 and P99 are from a change, or that start, until its Deployment was written, or
	// until the Foo says that it is ready where that is waited for.
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`
	// CPU is of the contestant while it was measured, Memory the most that it ever had,
	// and Heap what it has in the end without its mapped binary.
	CPU          float64 `json:"cpuSeconds"`
	Memory       uint64  `json:"peakMemoryBytes"`
	Heap         uint64  `json:"anonymousMemoryBytes"`
	APIServerCPU float64 `json:"apiServerCPUSeconds"`
	EtcdCPU      float64 `json:"etcdCPUSeconds"`
	Calls        calls   `json:"calls"`
	LoadAverage  float64 `json:"loadAverage"`
}

// measure has the contestant of a trial meet its load. What was prepared for that must be
// over; begin makes the changes, or starts a contestant that comes after them.
func (t *trial) measure(ctx context.Context, begin func() error) (result, error) {
	before, err := t.usages()
	if err != nil {
		return result{}, err
	}
	told, stopWatch, err := t.watchReady(ctx)
	if err != nil {
		return result{}, err
	}
	defer stopWatch()
	since := time.Now()
	if err := begin(); err != nil {
		return result{}, err
	}
	r := result{Contestant: t.contestant.name, Changes: t.load.changes(t.foos)}
	answers, gaveUp := t.awaitAnswers(ctx, since, told)
	if gaveUp != nil && !errors.Is(gaveUp, errGaveUp) {
		return r, gaveUp
	}
	if err := sleep(ctx, max(quiet, t.load.hold)); err != nil {
		return r, err
	}
	after, err := t.usages()
	if err != nil {
		return r, err
	}
	r.CPU = (after.contestant.CPU - before.contestant.CPU).Seconds()
	r.Memory, r.Heap = after.contestant.Peak, after.contestant.Anonymous
	r.APIServerCPU, r.EtcdCPU = (after.apiServer.CPU - before.apiServer.CPU).Seconds(), (after.etcd.CPU - before.etcd.CPU).Seconds()
	if r.Calls, err = t.calls(since, time.Now()); err != nil {
		return r, err
	}
	r.LoadAverage = usage.LoadAverage()
	if err := t.profiles.finish(); err != nil {
		return r, err
	}
	r.read(answers, t.load, since, t.lab.patience)
	return r, gaveUp
}

// read takes from the answers how many there were, and how fast. What was not answered in
// time counts as if it had been at the end of it.
func (r *result) read(answers map[string]answer, load load, since time.Time, patience time.Duration) {
	begin, end := since, since
	if !load.before {
		for _, a := range answers {
			if begin == since || a.changed.Before(begin) {
				begin = a.changed
			}
		}
	}
	var latencies []time.Duration
	for _, a := range answers {
		at := a.at(load.answer)
		if at.IsZero() {
			end = since.Add(patience)
			latencies = append(latencies, patience)
			continue
		}
		r.Answered++
		if at.After(end) {
			end = at
		}
		if load.answer == statusAnswer {
			at = a.deployment
		}
		latencies = append(latencies, at.Sub(a.changed))
	}
	if r.Changes == 0 {
		return
	}
	r.Seconds = end.Sub(begin).Seconds()
	r.P50, r.P99 = percentile(latencies, 50).Seconds(), percentile(latencies, 99).Seconds()
}

// usages is what the processes of a trial have taken.
type usages struct{ contestant, apiServer, etcd usage.Usage }

// usages does without the contestant if that is not started.
func (t *trial) usages() (u usages, err error) {
	if t.process != nil {
		if u.contestant, err = usage.Of(t.lab.dir, t.process.Name()); err != nil {
			return u, errors.Join(err, t.process.Err())
		}
	}
	if u.apiServer, err = usage.Of(t.lab.cluster.Dir, "kube-apiserver"); err != nil {
		return u, err
	}
	u.etcd, err = usage.Of(t.lab.cluster.Dir, "etcd")
	return u, err
}

// calls returns the contestant's requests that were received in this time.
func (t *trial) calls(from, to time.Time) (calls, error) {
	inTime := func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(from) && event.RequestReceivedTimestamp.Time.Before(to)
	}
	requests, err := t.lab.cluster.AuditEvents(by(userOf(t.contestant)), inTime)
	if err != nil {
		return calls{}, err
	}
	watches, err := t.lab.cluster.AuditWatches(by(userOf(t.contestant)), inTime)
	return countCalls(requests, watches), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Metrics that tests read, too.
const (
	untilDone    = "until all is done, s"
	writes       = "writes"
	ownCPU       = "own CPU, s"
	peakMemory   = "peak memory, MiB"
	apiServerCPU = "API server's CPU, s"
)

// measure runs a part of a trial, which returns values of its own. It adds what the processes
// use until shortly after it. The part may start the candidate.
func (t *trial) measure(ctx context.Context, part func(since time.Time) ([]value, error)) (r result, err error) {
	before, err := t.usages()
	if err != nil {
		return r, err
	}
	since := time.Now()
	if r.values, err = part(since); err != nil {
		return r, err
	}
	if err := sleep(ctx, quiet); err != nil {
		return r, err
	}
	after, err := t.usages()
	if err != nil {
		return r, err
	}
	requests, err := t.cluster.AuditEvents(t.byCandidate,
		func(event auditv1.Event) bool { return event.RequestReceivedTimestamp.After(since) })
	if err != nil {
		return r, err
	}
	r.values = append(append(r.values, countCalls(requests)...),
		value{ownCPU, after[0].cpu - before[0].cpu},
		value{peakMemory, mebibytes(after[0].peak)},
		value{"anonymous memory, MiB", mebibytes(after[0].anonymous)},
		value{apiServerCPU, after[1].cpu - before[1].cpu},
		value{"etcd's CPU, s", after[2].cpu - before[2].cpu},
	)
	r.loadAverage = loadAverage()
	return r, nil
}

// usages returns the usage of the candidate, if it runs, of kube-apiserver and of etcd.
func (t *trial) usages() (all [3]usage, err error) {
	var errs [3]error
	if t.process != nil {
		all[0], errs[0] = usageOf(t.dir, t.process.Name())
	}
	all[1], errs[1] = usageOf(t.cluster.Dir, "kube-apiserver")
	all[2], errs[2] = usageOf(t.cluster.Dir, "etcd")
	return all, errors.Join(errs[:]...)
}

// measureChanges measures how changes are answered after begin. begin makes the changes, or
// starts a candidate after them.
func (t *trial) measureChanges(ctx context.Context, begin func(context.Context) error) (result, error) {
	return t.measure(ctx, func(since time.Time) ([]value, error) {
		if err := begin(ctx); err != nil {
			return nil, err
		}
		answers, err := t.awaitAnswers(ctx, since)
		if err != nil {
			return nil, err
		}
		return t.changes.read(answers, since), nil
	})
}

// read returns how fast the changes were answered.
func (c changes) read(answers map[string]answer, since time.Time) []value {
	begin, end := since, since
	var latencies []time.Duration
	for _, a := range answers {
		at := a.at(c.status)
		if at.After(end) {
			end = at
		}
		if !c.before && (begin == since || a.changed.Before(begin)) {
			begin = a.changed
		}
		if c.status {
			at = a.deployment
		}
		latencies = append(latencies, at.Sub(a.changed))
	}
	return append([]value{{untilDone, end.Sub(begin).Seconds()}}, percentiles("change to Deployment", latencies)...)
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Metrics with budgets, and metrics on the results page.
const (
	untilDone       = "until all is done, s"
	deploymentP50   = "change to Deployment p50, ms"
	deploymentP99   = "change to Deployment p99, ms"
	writes          = "writes"
	refusedWrites   = "refused writes"
	ownCPU          = "own CPU, s"
	peakMemory      = "peak memory, MiB"
	anonymousMemory = "anonymous memory, MiB"
	apiServerCPU    = "API server's CPU, s"
)

// measure runs a part of a trial, which returns values of its own. It adds what the processes
// use until shortly after it. The part may start the candidate.
func (t *trial) measure(ctx context.Context, part func(since time.Time) ([]value, error)) (r result, err error) {
	before, err := t.usages()
	if err != nil {
		return r, err
	}
	since := time.Now()
	if r.Values, err = part(since); err != nil {
		return r, err
	}
	if err := sleep(ctx, quiet); err != nil {
		return r, err
	}
	after, err := t.usages()
	if err != nil {
		return r, err
	}
	requests, err := t.cluster.AuditEvents(t.byCandidate, func(event auditv1.Event) bool { return event.RequestReceivedTimestamp.After(since) })
	if err != nil {
		return r, err
	}
	r.Values = append(append(r.Values, countCalls(requests)...),
		value{ownCPU, after[0].cpu - before[0].cpu},
		value{peakMemory, mebibytes(after[0].peak)},
		value{anonymousMemory, mebibytes(after[0].anonymous)},
		value{apiServerCPU, after[1].cpu - before[1].cpu},
		value{"etcd's CPU, s", after[2].cpu - before[2].cpu},
	)
	r.LoadAverage = loadAverage()
	return r, nil
}

// usages returns the usage of the candidate, if it runs, of kube-apiserver and of etcd.
func (t *trial) usages() (all [3]usage, err error) {
	var errs [3]error
	if t.process != nil {
		all[0], errs[0] = t.process.usage()
	}
	all[1], errs[1] = usageOf(t.cluster.Dir, "kube-apiserver")
	all[2], errs[2] = usageOf(t.cluster.Dir, "etcd")
	return all, errors.Join(errs[:]...)
}

// measureChanges measures how changes are answered after begin. begin makes the changes, or
// starts a candidate after them.
func (t *trial) measureChanges(ctx context.Context, begin func(context.Context) error) (result, error) {
	return t.measure(ctx, func(since time.Time) ([]value, error) {
		finish := t.profile(ctx)
		if err := begin(ctx); err != nil {
			return nil, err
		}
		if t.changes.before { // it has only just started
			finish = t.profile(ctx)
		}
		if t.changes.settle {
			err := t.awaitSettled(ctx)
			return []value{{untilDone, time.Since(since).Seconds()}}, errors.Join(err, finish())
		}
		answers, err := t.awaitAnswers(ctx, since)
		return t.changes.read(answers, since), errors.Join(err, sleep(ctx, t.changes.hold), finish())
	})
}

// read returns how fast the changes were answered.
func (c changes) read(answers map[string]answer, since time.Time) (values []value) {
	if len(answers) == 0 {
		return nil
	}
	begin, end := since, since
	var latencies []time.Duration
	for _, a := range answers {
		at := a.at(c.answer)
		if at.After(end) {
			end = at
		}
		if !c.before && (begin == since || a.changed.Before(begin)) {
			begin = a.changed
		}
		if c.answer == statusAnswer {
			at = a.deployment
		}
		latencies = append(latencies, at.Sub(a.changed))
	}
	if c.every == 0 {
		values = append(values, value{untilDone, end.Sub(begin).Seconds()})
	}
	metric := "change to Deployment"
	if c.answer == podAnswer {
		metric = "change to status"
	}
	return append(values, percentiles(metric, latencies)...)
}

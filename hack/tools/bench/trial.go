// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/process"
)

const (
	clients = 16 // that make changes concurrently
	// quiet is how long a candidate must write nothing before it is measured, and how long the
	// measurement continues after its last answer.
	quiet = 2 * time.Second
	// probe is a Foo that shows that a candidate works.
	probe = "probe"
)

// trial is one run of a candidate under a load.
type trial struct {
	*harness
	candidate candidate
	changes   changes
	n         int
	namespace string
	process   *process.Process // nil if it does not run
}

// try runs a candidate under a load.
func (h *harness) try(ctx context.Context, c candidate, l load, n int) (r result, err error) {
	h.runs++
	t := &trial{harness: h, candidate: c, n: n, namespace: fmt.Sprintf("run-%d", h.runs)}
	if err := h.kubectl(ctx, []string{"create", "namespace", t.namespace}); err != nil {
		return r, err
	}
	defer func(namespace string) {
		err = errors.Join(err, t.stop(), h.clear(context.WithoutCancel(ctx), namespace))
	}(t.namespace)
	return l.run(ctx, t)
}

func (t *trial) start(ctx context.Context) (err error) {
	kubeconfig, err := t.kubeconfig(ctx, t.candidate)
	if err != nil {
		return err
	}
	t.process, err = t.harness.start(t.candidate, kubeconfig)
	return err
}

func (t *trial) stop() error {
	if t.process == nil {
		return nil
	}
	err := t.process.Stop(stopGrace)
	t.process = nil
	return err
}

// run measures how a candidate answers changes.
func (c changes) run(ctx context.Context, t *trial) (result, error) {
	t.changes = c
	if c.served {
		if err := t.serve(ctx); err != nil {
			return result{}, err
		}
	}
	if !c.before {
		if err := t.startAndSettle(ctx); err != nil {
			return result{}, err
		}
		return t.measureChanges(ctx, t.makeChanges)
	}
	if err := t.makeChanges(ctx); err != nil {
		return result{}, err
	}
	return t.measureChanges(ctx, t.start)
}

// serve makes the candidate sync new Foos. If another program had synced them before, each
// write of the candidate would change fields of two managers and cost the API server more.
func (t *trial) serve(ctx context.Context) error {
	first := &trial{harness: t.harness, candidate: t.candidate, changes: creating, n: t.n, namespace: t.namespace}
	if err := first.start(ctx); err != nil {
		return err
	}
	since := time.Now()
	err := first.makeChanges(ctx)
	if err == nil {
		_, err = first.awaitAnswers(ctx, since)
	}
	return errors.Join(err, first.stop())
}

// startAndSettle starts the candidate and returns when it syncs Foos and has stopped writing.
func (t *trial) startAndSettle(ctx context.Context) error {
	if err := t.start(ctx); err != nil {
		return err
	}
	// Some requests are made only before the first change of an object.
	for replicas, change := range []func(context.Context, *harness, string, string) error{1: create, 2: scaleTo(2)} {
		if change == nil {
			continue
		}
		if err := change(ctx, t.harness, t.namespace, probe); err != nil {
			return err
		}
		err := t.await(ctx, fmt.Sprintf("%s has synced a Foo to %d replicas", t.candidate.name, replicas), func(ctx context.Context) error {
			d, err := t.kube.AppsV1().Deployments(t.namespace).Get(ctx, probe, metav1.GetOptions{})
			if err == nil && int(*d.Spec.Replicas) != replicas {
				err = fmt.Errorf("the Deployment has %d", *d.Spec.Replicas)
			}
			return errors.Join(err, t.process.Err())
		})
		if err != nil {
			return err
		}
	}
	return t.settled(ctx)
}

// settled waits until the candidate has stopped writing.
func (t *trial) settled(ctx context.Context) error {
	return t.await(ctx, t.candidate.name+" stops writing", func(context.Context) error {
		since := time.Now().Add(-quiet)
		writes, err := t.cluster.AuditEvents(t.byCandidate, cluster.InNamespace(t.namespace), func(event auditv1.Event) bool {
			return event.StageTimestamp.After(since) && !isRead(event)
		})
		if err == nil && len(writes) > 0 {
			err = fmt.Errorf("%d writes in %v", len(writes), quiet)
		}
		return err
	})
}

// makeChanges makes all changes, as fast as the clients can.
func (t *trial) makeChanges(ctx context.Context) error {
	errs := make([]error, t.n)
	workqueue.ParallelizeUntil(ctx, clients, t.n, func(i int) {
		errs[i] = t.changes.change(ctx, t.harness, t.namespace, fooName(i))
	})
	return errors.Join(append(errs, ctx.Err())...)
}

// awaitAnswers waits until all changes are answered and returns the answers.
func (t *trial) awaitAnswers(ctx context.Context, since time.Time) (answers map[string]answer, err error) {
	started, after := time.Time{}, since
	if t.changes.before {
		started, after = since, time.Time{}
	}
	err = t.await(ctx, t.candidate.name+" has answered all changes", func(ctx context.Context) error {
		events, err := t.cluster.AuditEvents(cluster.InNamespace(t.namespace), func(event auditv1.Event) bool {
			return event.ObjectRef.Name != probe && !isRead(event) && event.RequestReceivedTimestamp.After(after)
		})
		if err != nil {
			return err
		}
		answers = readAnswers(events, t.candidate.user(), t.changes.call, started)
		for name, a := range answers {
			if a.at(t.changes.status).IsZero() {
				return errors.Join(fmt.Errorf("%s is not answered", name), t.process.Err(), sleep(ctx, poll))
			}
		}
		return nil
	})
	return answers, err
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
)

const (
	clients   = 16 // that make changes at once
	settle    = 30 * time.Second
	glance    = 500 * time.Millisecond // between two looks at the audit log
	stopGrace = 20 * time.Second
	// probe is the Foo that shows that a contestant works.
	probe = "probe"
)

// trial is one contestant that meets one load.
type trial struct {
	lab        *lab
	contestant contestant
	load       load
	foos       int
	namespace  string
	process    *process.Process // nil if none runs
	profiles   profiles
}

// try has a contestant meet a load. With errGaveUp there is a result nonetheless.
func (l *lab) try(ctx context.Context, c contestant, load load, foos int) (r result, err error) {
	l.runs++
	t := &trial{lab: l, contestant: c, load: load, foos: foos, namespace: fmt.Sprintf("run-%d", l.runs)}
	_, err = l.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}, metav1.CreateOptions{})
	if err != nil {
		return r, err
	}
	defer func() {
		if failed := errors.Join(t.stop(), l.clear(context.WithoutCancel(ctx), t.namespace)); failed != nil {
			err = failed // worse than to give up: the next would meet what is left
		}
	}()
	if load.served {
		if err := t.serve(ctx); err != nil {
			return r, err
		}
	}
	if !load.before {
		err := t.startAndRest(ctx)
		// Who does not come to rest in time is as busy when nothing happens.
		if err != nil && (!errors.Is(err, errGaveUp) || t.load.changes(t.foos) > 0) {
			return t.never(err)
		}
		return t.measure(ctx, func() error {
			t.profiles.begin(ctx, t)
			return t.makeChanges(ctx)
		})
	}
	if load.served {
		// That it has something to do is to be because of the changes.
		if err := t.startAndRest(ctx); err != nil {
			return t.never(err)
		}
		if err := t.stop(); err != nil {
			return r, err
		}
	}
	if err := t.makeChanges(ctx); err != nil {
		return r, err
	}
	return t.measure(ctx, func() error {
		err := t.start(ctx)
		t.profiles.begin(ctx, t)
		return err
	})
}

// never is the result of a contestant that was not ready in time.
func (t *trial) never(err error) (result, error) {
	patience := t.lab.patience.Seconds()
	return result{Contestant: t.contestant.name, Changes: t.load.changes(t.foos), Seconds: patience, P50: patience, P99: patience}, err
}

// serve makes Foos and has the contestant serve them: with fields that somebody else
// manages, too, each write would cost the API server more than it does in real life.
func (t *trial) serve(ctx context.Context) error {
	before := &trial{lab: t.lab, contestant: t.contestant, load: creation, foos: t.foos, namespace: t.namespace}
	if t.contestant.slow {
		before.contestant = floor()
	}
	if err := before.start(ctx); err != nil {
		return err
	}
	return errors.Join(before.makeAndAwait(ctx), before.stop())
}

// makeAndAwait makes all changes and returns when they are answered.
func (t *trial) makeAndAwait(ctx context.Context) error {
	since := time.Now()
	if err := t.makeChanges(ctx); err != nil {
		return err
	}
	_, err := t.awaitAnswers(ctx, since, nil)
	return err
}

func (t *trial) start(ctx context.Context) (err error) {
	t.process, err = t.lab.start(ctx, t.contestant)
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

// startAndRest starts the contestant and returns when it serves Foos and, if that ever
// happens, has nothing more to do.
func (t *trial) startAndRest(ctx context.Context) error {
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := create(ctx, t.lab, t.namespace, probe); err != nil {
		return err
	}
	if err := t.awaitProbe(ctx, 1); err != nil {
		return err
	}
	// What it asks for only before it first changes something is asked for by then.
	if err := scaleTo(2)(ctx, t.lab, t.namespace, probe); err != nil {
		return err
	}
	return errors.Join(t.awaitProbe(ctx, 2), t.rest(ctx))
}

// awaitProbe waits until the contestant has given the Deployment of the probe its replicas.
func (t *trial) awaitProbe(ctx context.Context, replicas int32) error {
	err := t.lab.await(ctx, fmt.Sprintf("%s serves a Foo of %d replicas", t.contestant.name, replicas), func(ctx context.Context) error {
		d, err := t.lab.kube.AppsV1().Deployments(t.namespace).Get(ctx, probe, metav1.GetOptions{})
		if err == nil && *d.Spec.Replicas != replicas {
			err = fmt.Errorf("there are %d", *d.Spec.Replicas)
		}
		return err
	})
	if t.process.Err() != nil {
		return t.process.Err()
	}
	if err != nil {
		return errors.Join(errGaveUp, err)
	}
	return nil
}

// rest returns when the contestant has written nothing for a while, or after some time if
// it never rests.
func (t *trial) rest(ctx context.Context) error {
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); {
		if err := sleep(ctx, poll); err != nil {
			return err
		}
		since := time.Now().Add(-quiet)
		writes, err := t.lab.cluster.AuditEvents(by(userOf(t.contestant)), cluster.InNamespace(t.namespace), func(event auditv1.Event) bool {
			return event.StageTimestamp.After(since) && !isRead(event)
		})
		if err != nil || len(writes) == 0 {
			return err
		}
	}
	return nil
}

// makeChanges makes all changes, as fast as the load says.
func (t *trial) makeChanges(ctx context.Context) error {
	count := t.load.changes(t.foos)
	errs := make([]error, count)
	change := func(i int) { errs[i] = t.load.change(ctx, t.lab, t.namespace, fmt.Sprintf("foo-%04d", i)) }
	if t.load.every == 0 {
		workqueue.ParallelizeUntil(ctx, clients, count, change)
		return errors.Join(append(errs, ctx.Err())...)
	}
	var changing sync.WaitGroup
	for i := range count {
		changing.Go(func() { change(i) })
		if err := sleep(ctx, t.load.every); err != nil {
			break
		}
	}
	changing.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// awaitAnswers returns what became of the changes when all are answered, or with
// errGaveUp when the lab's patience has ended.
func (t *trial) awaitAnswers(ctx context.Context, since time.Time, told *readyTimes) (answers map[string]answer, err error) {
	started := time.Time{}
	if t.load.before {
		started = since
	}
	for deadline := since.Add(t.lab.patience); ; {
		events, err := t.lab.cluster.AuditEvents(cluster.InNamespace(t.namespace), func(event auditv1.Event) bool {
			return event.ObjectRef.Name != probe && !isRead(event) && (t.load.before || event.RequestReceivedTimestamp.After(since))
		})
		if err != nil {
			return nil, err
		}
		answers = readAnswers(events, userOf(t.contestant), t.load.call, started)
		missing := 0
		for name, a := range answers {
			a.ready = told.of(name)
			answers[name] = a
			if a.at(t.load.answer).IsZero() {
				missing++
			}
		}
		if missing == 0 {
			return answers, nil
		}
		if err := t.process.Err(); err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return answers, errGaveUp
		}
		if err := sleep(ctx, glance); err != nil {
			return nil, err
		}
	}
}

// readyTimes is when Foos were told to have a Pod that is available.
type readyTimes struct {
	mutex sync.Mutex
	times map[string]time.Time
}

// of returns the zero time if it was not told; nil was told nothing.
func (r *readyTimes) of(name string) time.Time {
	if r == nil {
		return time.Time{}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.times[name]
}

// watchReady begins to note which Foos are ready, if the load is about that.
func (t *trial) watchReady(ctx context.Context) (told *readyTimes, stop func(), err error) {
	if t.load.answer != readyAnswer {
		return nil, func() {}, nil
	}
	w, err := t.lab.sample.SamplecontrollerV1alpha1().Foos(t.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	told = &readyTimes{times: map[string]time.Time{}}
	var noting sync.WaitGroup
	noting.Go(func() {
		for event := range w.ResultChan() {
			now := time.Now()
			foo, ok := event.Object.(*samplev1alpha1.Foo)
			if !ok || foo.Status.AvailableReplicas == 0 || !told.of(foo.Name).IsZero() {
				continue
			}
			told.mutex.Lock()
			told.times[foo.Name] = now
			told.mutex.Unlock()
		}
	})
	return told, func() { w.Stop(); noting.Wait() }, nil
}

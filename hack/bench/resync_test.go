// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// resync is how a program went through all Foos after its start.
type resync struct {
	foos     int // that it went through for that, and not because a user edited them
	from, to time.Time
	// What a user edited meanwhile, and when all was quiet again.
	during, idle []edit
}

// takeOver has a program begin on all Foos.
func (l *lab) takeOver(ctx context.Context, f found, who takerOver) (r resync, err error) {
	l.replicas++
	replicas := l.replicas
	if f.behind {
		if err := l.scaleFoos(ctx, replicas); err != nil {
			return r, err
		}
	}
	began := time.Now()
	p, err := who.start(l, ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Stop(stopGrace)) }()

	u := &user{lab: l, foos: rand.Perm(fooCount), declared: map[string]int{}}
	editing, stop := context.WithCancel(ctx)
	defer stop()
	var edited sync.WaitGroup
	var failed error
	if who.edited {
		unwatch, err := u.watch(ctx)
		if err != nil {
			return r, err
		}
		defer unwatch()
		err = await(ctx, who.name+" begins", time.Millisecond, func() error {
			log, err := os.ReadFile(l.group.LogPath(p.Name()))
			if err == nil && !strings.Contains(string(log), who.begins) {
				err = errors.New("not yet")
			}
			return errors.Join(err, p.Err())
		})
		if err != nil {
			return r, err
		}
		edited.Go(func() { failed = u.edit(editing, f.rate) })
	}
	err = await(ctx, "all Foos were gone through", 500*time.Millisecond, func() error {
		before := r.foos
		if f.behind {
			r.foos, r.from, r.to, err = l.written(replicas, began)
		} else {
			r.foos, r.from, r.to, err = l.looked(p.Name())
		}
		mayBeEdited := f.rate * int(1+time.Since(began).Seconds())
		if err == nil && (r.foos > before || r.foos+mayBeEdited < fooCount) {
			err = fmt.Errorf("%d were", r.foos)
		}
		return errors.Join(err, p.Err())
	})
	stop()
	edited.Wait()
	if err := errors.Join(err, failed); err != nil || !who.edited {
		return r, err
	}
	if err := l.waitQuiet(ctx); err != nil {
		return r, err
	}
	idle := time.Now()
	editing, stop = context.WithTimeout(ctx, idleTime)
	defer stop()
	if err := u.edit(editing, f.rate); err != nil {
		return r, err
	}
	if err := l.waitQuiet(ctx); err != nil {
		return r, err
	}
	edits, err := u.read(began, l.group.LogPath(p.Name()))
	for _, e := range edits {
		switch {
		case e.at.After(idle):
			r.idle = append(r.idle, e)
		case e.at.After(r.from) && e.at.Before(r.to):
			r.during = append(r.during, e)
		}
	}
	return r, err
}

// scaleFoos scales all Foos.
func (l *lab) scaleFoos(ctx context.Context, replicas int) error {
	errs := make([]error, fooCount)
	workqueue.ParallelizeUntil(ctx, 16, fooCount, func(i int) {
		errs[i] = l.patchFoo(ctx, fooName(i), fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	})
	return errors.Join(append(errs, ctx.Err())...)
}

// written returns how many Deployments were given so many replicas, and when the first and
// the last.
func (l *lab) written(replicas int, since time.Time) (foos int, from, to time.Time, err error) {
	writes, err := l.writes(since)
	if err != nil {
		return 0, from, to, err
	}
	for _, event := range writes {
		if given(event) != replicas {
			continue
		}
		foos++
		if to = event.RequestReceivedTimestamp.Time; foos == 1 {
			from = to
		}
	}
	return foos, from, to, nil
}

// writes returns all changes of Foos and of Deployments, in the order in which they were
// received.
func (l *lab) writes(since time.Time) ([]auditv1.Event, error) {
	events, err := l.cluster.AuditEvents(cluster.InNamespace(namespace), func(event auditv1.Event) bool {
		call := cluster.Call(event)
		return event.RequestReceivedTimestamp.After(since) && (call == "update deployments/scale" || call == "patch foos") && event.ResponseStatus.Code/100 == 2
	})
	slices.SortFunc(events, func(a, b auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	return events, err
}

// given returns how many replicas a write gives to a Deployment; 0 if it says nothing of
// them.
func given(event auditv1.Event) int {
	var patch appsv1.Deployment
	if event.RequestObject == nil || json.Unmarshal(event.RequestObject.Raw, &patch) != nil || patch.Spec.Replicas == nil {
		return 0
	}
	return int(*patch.Spec.Replicas)
}

// synced is a sync of a Foo that the daemon's log tells of.
type synced struct {
	foo, trigger string
	began, ended time.Time
}

// line is what the daemon logs of a sync.
var line = regexp.MustCompile(`(?m)^I(.{20}) .*"Synced" controller="foo-controller" key="[^/]*/([^"]*)" trigger="([^"]*)" result="[^"]*" duration="([^"]*)"$`)

// readSyncs returns the syncs of Foos in the log of a daemon, none in that of another.
func readSyncs(path string) (all []synced, err error) {
	log, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, match := range line.FindAllSubmatch(log, -1) {
		ended, err := time.ParseInLocation("0102 15:04:05.000000", string(match[1]), time.Local)
		if err != nil {
			return nil, fmt.Errorf("reading the daemon's log: %w", err)
		}
		took, err := time.ParseDuration(string(match[4]))
		if err != nil {
			return nil, fmt.Errorf("reading the daemon's log: %w", err)
		}
		ended = ended.AddDate(time.Now().Year(), 0, 0)
		all = append(all, synced{string(match[2]), string(match[3]), ended.Add(-took), ended})
	}
	return all, nil
}

// looked returns how many Foos the daemon has looked at because it began to lead, and when
// the first and the last.
func (l *lab) looked(name string) (foos int, from, to time.Time, err error) {
	syncs, err := readSyncs(l.group.LogPath(name))
	for _, s := range syncs {
		if s.trigger != "start" {
			continue
		}
		if foos++; foos == 1 {
			from = s.began
		}
		to = s.ended
	}
	return foos, from, to, err
}

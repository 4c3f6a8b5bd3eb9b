// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// edit is what became of an edit of a user, in time since it was received.
type edit struct {
	at       time.Time
	told     time.Duration // a watch told of it, that of somebody with nothing else to do
	begun    time.Duration // a worker began with it, if that is known
	written  time.Duration // the write of the Deployment was received
	answered time.Duration // from then until that was answered
}

// user scales single Foos.
type user struct {
	lab      *lab
	foos     []int          // in the order in which they are edited
	declared map[string]int // the replicas of those that were
	told     sync.Map       // from replicas to when a watch told of them first
}

// watch notes when it is told of which replicas, until unwatch is called.
func (u *user) watch(ctx context.Context) (unwatch func(), err error) {
	w, err := u.lab.sample.SamplecontrollerV1alpha1().Foos(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range w.ResultChan() {
			if foo, ok := event.Object.(*samplev1alpha1.Foo); ok {
				u.told.LoadOrStore(int(ptr.Deref(foo.Spec.Replicas, 0)), time.Now())
			}
		}
	})
	return func() {
		w.Stop()
		watching.Wait()
	}, nil
}

// edit scales one Foo after the other, until ctx ends.
func (u *user) edit(ctx context.Context, perSecond int) error {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		name := fooName(u.foos[len(u.declared)])
		u.lab.replicas++
		u.declared[name] = u.lab.replicas
		if err := u.lab.patchFoo(context.WithoutCancel(ctx), name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, u.lab.replicas)); err != nil {
			return err
		}
	}
}

// read finds each edit in the audit log, and the write for it, and the sync that made that
// in the log of the daemon.
func (u *user) read(since time.Time, path string) ([]edit, error) {
	events, err := u.lab.writes(since)
	if err != nil {
		return nil, err
	}
	syncs, err := readSyncs(path)
	if err != nil {
		return nil, err
	}
	of := map[string][]synced{}
	for _, s := range syncs {
		of[s.foo] = append(of[s.foo], s)
	}
	edits := map[string]edit{}
	for _, event := range events {
		name, at := event.ObjectRef.Name, event.RequestReceivedTimestamp.Time
		e := edits[name]
		switch call := cluster.Call(event); {
		case call == "patch foos":
			told, _ := u.told.Load(u.declared[name])
			seen, _ := told.(time.Time)
			edits[name] = edit{at: at, told: seen.Sub(at)}
		case e.written == 0 && given(event) == u.declared[name]:
			e.written, e.answered = at.Sub(e.at), event.StageTimestamp.Sub(at)
			if i := slices.IndexFunc(of[name], func(s synced) bool { return s.began.Before(at) && s.ended.After(at) }); i >= 0 {
				e.begun = of[name][i].began.Sub(e.at)
			}
			edits[name] = e
		}
	}
	maps.DeleteFunc(edits, func(name string, _ edit) bool { return u.declared[name] == 0 })
	for name, e := range edits {
		if e.written <= 0 || e.told <= 0 {
			return nil, fmt.Errorf("of the edit of %s was told after %v, and it was written after %v", name, e.told, e.written)
		}
	}
	if len(edits) != len(u.declared) {
		return nil, fmt.Errorf("the audit log has %d of %d edits", len(edits), len(u.declared))
	}
	return slices.SortedFunc(maps.Values(edits), func(a, b edit) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) }), nil
}

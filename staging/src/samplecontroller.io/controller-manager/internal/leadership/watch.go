// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// watch watches the Lease until ctx ends. When a watch ends, it opens another after pause,
// to which jitter adds up to the same again. It does not use a reflector, which may wait
// half a minute before it reconnects.
func (o *observer) watch(ctx context.Context, pause time.Duration) {
	denied := false
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		err := o.watchOnce(ctx)
		logger := klog.FromContext(ctx)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsForbidden(err) && !denied:
			logger.Error(err, "Lease cannot be watched, reading it instead until the verb watch is granted", "lease", o.name)
		case err != nil:
			logger.V(2).Info("Watch of the lease ended, opening another", "err", err)
		}
		if isAnswer(err) && ctx.Err() == nil {
			_, _ = o.read(ctx) // instead of the watch; access records its error
		}
		denied = apierrors.IsForbidden(err)
	}, pause, 1, true)
}

// watchOnce observes the events of one watch, which starts with the current Lease. It
// returns why the watch ended.
func (o *observer) watchOnce(ctx context.Context) error {
	w, err := o.client.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.name).String(),
	})
	if err != nil {
		return err
	}
	defer func() {
		w.Stop()
		for range w.ResultChan() { // until its writer has ended
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if err := o.handle(ctx, event); err != nil {
				return err
			}
		}
	}
}

// handle observes one watch event.
func (o *observer) handle(ctx context.Context, event watch.Event) error {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		lease, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			return fmt.Errorf("watch event contains a %T, want a Lease", event.Object)
		}
		o.observe(ctx, lease, event.Type == watch.Deleted)
		return nil
	case watch.Error:
		return apierrors.FromObject(event.Object)
	default:
		return nil
	}
}

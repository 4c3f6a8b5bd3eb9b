// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// releasePause is how long to wait after a failed attempt to release the Lease.
const releasePause = 250 * time.Millisecond

// lock gives client-go's elector access to the Lease during one campaign. It makes the
// elector wait until the Lease may be taken, reports each renewal to the term, and refuses
// all requests once the term is over.
//
// A write carries the resourceVersion that the elector itself read or wrote last, not a
// newer one from the watch. The elector renews without reading, so with a newer version it
// would erase the Lease of a successor.
//
// It is used by one goroutine at a time.
type lock struct {
	*observer
	namespace string
	term      *Term
	logger    klog.Logger

	base  *coordinationv1.Lease // what the next write overwrites
	tried bool                  // to write, which may have succeeded whatever the response
	free  time.Time             // when the Lease was first seen to be free
}

var _ resourcelock.Interface = &lock{}

// Get returns the Lease. Before the term it waits until the Lease may be taken; during the
// term it reads the Lease from the API server. It presents an expired Lease as released,
// because a new elector would otherwise wait for another LeaseDuration.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := l.get(klog.NewContext(ctx, l.logger))
	if err != nil {
		if ctx.Err() == nil && !apierrors.IsNotFound(err) && !errors.Is(err, ErrLost) {
			l.logger.Error(err, "Failed to read lease", "lease", l.Describe())
		}
		return nil, nil, err
	}
	l.base = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	if !l.term.begun() && record.HolderIdentity != l.identity {
		record.HolderIdentity = ""
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (l *lock) get(ctx context.Context) (*coordinationv1.Lease, error) {
	if l.term.begun() {
		if err := l.term.Valid(); err != nil {
			return nil, err
		}
		return l.read(ctx)
	}
	lease, waited, err := l.waitTakeable(ctx)
	if waited || l.free.IsZero() {
		l.free = time.Now()
	}
	return lease, err
}

// Create creates the Lease, held by this process.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", func(ctx context.Context, sent time.Time) (*coordinationv1.Lease, error) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name}}
		l.fill(lease, record, sent)
		return l.client.Create(ctx, lease, metav1.CreateOptions{})
	})
}

// Update takes or renews the Lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "update", func(ctx context.Context, sent time.Time) (*coordinationv1.Lease, error) {
		lease := l.base.DeepCopy()
		l.fill(lease, record, sent)
		return l.client.Update(ctx, lease, metav1.UpdateOptions{})
	})
}

// write makes a request by which this process holds the Lease.
func (l *lock) write(ctx context.Context, verb string,
	request func(context.Context, time.Time) (*coordinationv1.Lease, error)) error {
	if err := l.term.Valid(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, l.logger), l.timeout)
	defer cancel()
	l.tried = true
	sent := time.Now()
	lease, err := request(ctx, sent)
	// To update a Lease that was deleted is a lost race, but to create one needs a namespace.
	lostRace := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || verb == "update" && apierrors.IsNotFound(err)
	canceled := errors.Is(ctx.Err(), context.Canceled)
	if !canceled {
		err = l.access.recordWrite(err, lostRace)
	}
	if err != nil {
		l.doubt()
		if lostRace || canceled {
			l.logger.V(2).Info("Lease update conflict", "lease", l.Describe(), "err", err)
		} else {
			l.logger.Error(err, "Failed to write lease", "lease", l.Describe())
		}
		return err
	}
	l.base = lease
	l.term.renewed(sent)
	l.observe(ctx, lease, false)
	return nil
}

// fill writes the record into the Lease. It sets the times itself, because the elector took
// them before it waited for the Lease to become free.
func (l *lock) fill(lease *coordinationv1.Lease, record resourcelock.LeaderElectionRecord, sent time.Time) {
	now := metav1.NewMicroTime(sent)
	acquired := &now
	if held(lease) == l.identity {
		acquired = lease.Spec.AcquireTime
	} else {
		delete(lease.Annotations, offeredAnnotation)
		delete(lease.Annotations, preferredAnnotation)
	}
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	lease.Spec.AcquireTime, lease.Spec.RenewTime = acquired, &now
}

// release releases the Lease if this process holds it. It tries again after an error, until ctx
// ends. The elector and all work must have ended.
func (l *lock) release(ctx context.Context) error {
	if !l.tried {
		return nil
	}
	lease, edited := l.base, false
	for {
		err := l.releaseFrom(ctx, lease)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case apierrors.IsConflict(err) && !edited:
			edited = true
			// A canceled renewal was committed after all, or somebody edits the Lease.
		case isRefusal(err) && !l.leads():
			return err // a process without the Lease does not wait for a permission
		default:
			// Also a refusal: an API server that has just started does not know its roles yet.
			select {
			case <-ctx.Done():
				return err
			case <-time.After(releasePause):
			}
		}
		lease = nil
	}
}

// leads reports whether the Lease was acquired for this term and has not been lost.
func (l *lock) leads() bool { return l.term.begun() && l.term.lost() == nil }

// releaseFrom releases the Lease if this process holds it in the given state. If that does not
// name this process, it reads the Lease first.
func (l *lock) releaseFrom(ctx context.Context, lease *coordinationv1.Lease) (err error) {
	if held(lease) != l.identity {
		if lease, err = l.read(ctx); err != nil {
			return err
		}
	}
	return l.giveUp(ctx, lease)
}

// giveUp marks the Lease as released, unless another process holds it.
func (l *lock) giveUp(ctx context.Context, lease *coordinationv1.Lease) error {
	if holder := held(lease); holder != l.identity {
		klog.FromContext(ctx).V(2).Info("Not releasing lease of another holder", "lease", l.Describe(), "holder", holder)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	now := metav1.NowMicro()
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](releasedSeconds)
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	delete(lease.Annotations, offeredAnnotation)
	lease, err := l.client.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	l.observe(ctx, lease, false)
	klog.FromContext(ctx).Info("Released lease", "lease", l.Describe())
	return nil
}

// RecordEvent does nothing, because the elector reports that it stopped leading before the
// work has drained.
func (l *lock) RecordEvent(string) {}

// Identity returns the identity of this process.
func (l *lock) Identity() string { return l.identity }

// Describe returns the key of the Lease.
func (l *lock) Describe() string { return fmt.Sprintf("%s/%s", l.namespace, l.name) }

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// tryPeriod is how often a process that does not lead tries whether it could take the
	// Lease. Jitter adds up to half of it.
	tryPeriod = 15 * time.Second
	// tolerated is how long requests for the Lease may be refused before a process that
	// could use it before is no longer ready.
	tolerated = 30 * time.Second
	// renewConnectionAfter is how many requests for the Lease in a row must time out for a
	// new connection, as in the kubelet.
	renewConnectionAfter = 2
)

// errNotRead is the reason before the first response.
var errNotRead = errors.New("the Lease has not been read yet")

// access records whether this process can use its Lease, as its requests show.
type access struct {
	namespace string
	metrics   *Metrics
	reconnect func() // may be nil

	mutex sync.Mutex
	// read and write are why the last read and the last write failed. nil means that it
	// succeeded, or that there was none.
	read, write error
	// since is when the API server began to refuse the requests, zero if it does not.
	since time.Time
	// usable is whether a write has ever succeeded.
	usable   bool
	timeouts int // in a row
}

// recordRead records the result of a read, and returns its error with a remedy.
func (a *access) recordRead(err error) error {
	if apierrors.IsNotFound(err) { // no Lease yet, or no namespace: the first write shows which
		a.record(&a.read, nil)
		return err
	}
	err = a.explain(err)
	a.record(&a.read, err)
	return err
}

// recordWrite records the result of a write, or of the dry run of one, and returns its error
// with a remedy. lostRace is whether it failed because the Lease had changed.
func (a *access) recordWrite(err error, lostRace bool) error {
	if lostRace {
		a.record(&a.write, nil)
		return err
	}
	err = a.explain(err)
	a.record(&a.write, err)
	return err
}

func (a *access) record(last *error, err error) {
	a.mutex.Lock()
	*last = err
	a.usable = a.usable || last == &a.write && err == nil
	refused := a.refused()
	if refused == nil {
		a.since = time.Time{}
	} else if a.since.IsZero() {
		a.since = time.Now()
	}
	if isTimeout(err) {
		a.timeouts++
	} else {
		a.timeouts = 0
	}
	reconnect := a.timeouts == renewConnectionAfter
	if reconnect {
		a.timeouts = 0
	}
	a.mutex.Unlock()
	a.metrics.refused(refused != nil)
	if reconnect && a.reconnect != nil {
		a.reconnect()
	}
}

// refused returns why the Lease cannot be used although the API server responds, nil if there
// is no such reason. Callers hold the mutex.
func (a *access) refused() error {
	switch {
	case isRefusal(a.read):
		return a.read
	case a.read == nil && isAnswer(a.write):
		return a.write
	}
	return nil
}

// failing returns why the last read and the last write failed, nil for one that succeeded.
func (a *access) failing() (read, write error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.read, a.write
}

// check returns an error while this process cannot use its Lease.
func (a *access) check() error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	refused := a.refused()
	switch {
	case refused != nil && (!a.usable || time.Since(a.since) >= tolerated):
		return fmt.Errorf("the Lease cannot be used since %s: %w", a.since.UTC().Format(time.RFC3339), refused)
	case !a.usable && a.read != nil:
		return fmt.Errorf("%w: %w", errNotRead, a.read)
	case !a.usable:
		return errNotRead
	}
	return nil
}

// explain adds the remedy to an error of a request for the Lease, if it lies in the flags.
func (a *access) explain(err error) error {
	switch {
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("not permitted in namespace %s; grant the permission, or set another --leader-elect-resource-namespace: %w", a.namespace, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist; create it, or set another --leader-elect-resource-namespace: %w", a.namespace, err)
	}
	return err
}

// isAnswer reports whether an error is a response of an API server that is not overloaded.
func isAnswer(err error) bool {
	answer := apierrors.APIStatus(nil)
	return errors.As(err, &answer) && !isTimeout(err) && !apierrors.IsTooManyRequests(err)
}

// isRefusal reports whether an error is a response that blames the request.
func isRefusal(err error) bool {
	answer := apierrors.APIStatus(nil)
	return isAnswer(err) && errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError
}

// isTimeout reports whether the API server, or what it needs, did not respond in time.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || err != nil && utilnet.IsTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err)
}

// tryRepeatedly tries until ctx ends whether this process could take the Lease.
func (e *Election) tryRepeatedly(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, e.try, tryPeriod, 0.5, true)
}

// try reads the Lease if it was not read before, or the last read failed: requests that depend
// on the watch alone would not show that. If another process holds the Lease, try also sends an
// update that changes nothing, as a dry run. Without that, a standby would learn only in a
// fail-over that it may not take the Lease. The campaign itself writes a Lease that nobody holds.
func (e *Election) try(ctx context.Context) {
	lease := e.observer.seen()
	if read, _ := e.observer.access.failing(); lease == nil || read != nil {
		var err error
		if lease, err = e.observer.read(ctx); err != nil {
			e.logRefusal(ctx, err, "Failed to read lease")
			return
		}
	}
	if holder := held(lease); holder == "" || holder == e.config.Identity {
		return
	}
	tryCtx, cancel := context.WithTimeout(ctx, e.observer.timeout)
	defer cancel()
	// A copy, because the client sets the kind of what it encodes, and the campaign uses the Lease too.
	_, err := e.observer.client.Update(tryCtx, lease.DeepCopy(), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if ctx.Err() != nil {
		return
	}
	// A deleted Lease is a lost race, too. A webhook that does not support dry runs answers with
	// a bad request, which says nothing about the write itself.
	lostRace := apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)
	if err := e.observer.access.recordWrite(err, lostRace); !lostRace {
		e.logRefusal(ctx, err, "Failed to try a write of the lease")
	}
}

// logRefusal logs an error that the campaign does not see while another process leads.
func (e *Election) logRefusal(ctx context.Context, err error, message string) {
	if isRefusal(err) && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, message, "lease", e.lease())
	}
}

// CheckLease fails while this process cannot use its Lease although the API server responds:
// permission is missing, the namespace does not exist, or the credentials are not accepted.
// A process that could use the Lease before has 30 seconds. It passes on a standby, and while
// the API server cannot be reached. Use it for readiness, so that a rollout with such a
// mistake does not replace the replicas that work.
func (e *Election) CheckLease(*http.Request) error { return e.observer.access.check() }

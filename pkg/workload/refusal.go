// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"
)

// maxRefusal is the maximum length of the API server's message in an Event.
const maxRefusal = 900

// StatusRefusals reports the status writes of one controller and kind that the API server
// refuses, because nothing in the status can say so:
//
//   - A kind without the subresource status is logged once, and makes the controller Degraded. Its
//     statuses are not written until a probe succeeds.
//   - Any other refusal, for example by the schema of an older CRD, by a policy or by a webhook, is
//     reported once for each object by a Warning Event and in the log. The write is retried.
//
// A missing permission is reported by the transport. StatusRefusals is safe for concurrent use.
type StatusRefusals[T Object] struct {
	resource string
	writes   *writes.Transport
	recorder record.EventRecorder
	clock    clock.PassiveClock
	exists   func(context.Context, T) (bool, error)

	mutex sync.Mutex
	byKey map[cache.ObjectName]refusal
}

// refusal has the failed status writes of an object since the last success.
type refusal struct {
	uid      types.UID
	since    time.Time
	tries    int
	reported bool
}

// NewStatusRefusals returns the StatusRefusals of a resource, which is named as in metrics, such
// as foos/status.samplecontroller.k8s.io. exists reads from the API server whether it still has the
// object, with the same UID. transport may be nil.
func NewStatusRefusals[T Object](resource string, transport *writes.Transport, recorder record.EventRecorder, exists func(context.Context, T) (bool, error)) *StatusRefusals[T] {
	return &StatusRefusals[T]{
		resource: resource, writes: transport, recorder: recorder, clock: clock.RealClock{}, exists: exists,
		byKey: map[cache.ObjectName]refusal{},
	}
}

// Paused returns how long no status is to be written, because the API server does not serve the
// subresource; 0 if one may be written. Call it just before a write.
func (r *StatusRefusals[T]) Paused() time.Duration { return r.writes.Paused(r.resource) }

// Succeeded records that the status of an object was written.
func (r *StatusRefusals[T]) Succeeded(ctx context.Context, key cache.ObjectName) {
	r.writes.Served(ctx, r.resource)
	r.Forget(key)
}

// Forget forgets an object that is gone.
func (r *StatusRefusals[T]) Forget(key cache.ObjectName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.byKey, key)
}

// Failed handles the error of a status write, and returns the error of the sync. If that is nil, the
// object is synced again after the returned time. If it is [IsGone], the object does not exist.
func (r *StatusRefusals[T]) Failed(ctx context.Context, obj T, err error) (again time.Duration, _ error) {
	if IsGone(err) {
		// If the kind has no status subresource, the answer is the same as for a missing object.
		exists, readErr := r.exists(ctx, obj)
		switch {
		case apierrors.IsNotFound(readErr):
			return 0, err // the kind is gone, too
		case readErr != nil:
			return 0, fmt.Errorf("reading %s after its status was not found: %w", obj.GetName(), readErr)
		case exists:
			r.writes.NotServed(ctx, r.resource)
			return writes.ProbeInterval, nil
		}
		return 0, err
	}
	message, hiccup := refusalOf(r.resource, obj, err)
	if message == "" {
		return 0, err
	}
	first, reported := r.note(obj, hiccup)
	if first {
		klog.FromContext(ctx).Error(err, "Status write was refused, retrying with backoff")
		r.recorder.Event(obj, corev1.EventTypeWarning, eventStatusWriteFailed, message)
	}
	if reported {
		return 0, reconcile.Logged(err)
	}
	return 0, err
}

// note counts a refusal, and returns whether it is to be reported now, and whether it has been.
func (r *StatusRefusals[T]) note(obj T, hiccup bool) (first, reported bool) {
	key, now := cache.MetaObjectToName(obj), r.clock.Now()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.byKey[key]
	if known.uid != obj.GetUID() {
		known = refusal{uid: obj.GetUID(), since: now}
	}
	known.tries++
	first = !known.reported && (!hiccup || known.tries >= reportTries && now.Sub(known.since) >= failingAfter)
	known.reported = known.reported || first
	r.byKey[key] = known
	return first, known.reported
}

// IsGone reports whether a write failed because the object does not exist, as far as the answer
// says.
func IsGone(err error) bool { return apierrors.IsNotFound(err) && denialOf(err) == nil }

// IsConflict reports whether a write failed because the object has changed since it was read.
func IsConflict(err error) bool { return apierrors.IsConflict(err) && denialOf(err) == nil }

// refusalOf returns the message of the Event about a refused status write, and whether it may be a
// hiccup. It returns "" for an error that is reported elsewhere or says nothing about the object: a
// conflict, a missing permission, no answer.
func refusalOf(resource string, obj metav1.Object, err error) (message string, hiccup bool) {
	if reconcile.IsWriteTimeout(err) {
		return "Status cannot be written: no answer within --write-timeout; an admission webhook may hang", true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || writes.IsMissingPermission(err, writes.Write{Verb: "patch", Resource: resource}, obj.GetName()) {
		return "", false
	}
	answer := status.Status()
	hint := ""
	switch denied := denialOf(err); {
	case isOldSchema(answer):
		hint = "; apply the CRDs of this version"
	case deniedByWebhook(answer):
	case answer.Code >= http.StatusInternalServerError || answer.Code == http.StatusTooManyRequests:
		hiccup = true
	case denied == nil:
		return "", false
	}
	text := answer.Message
	if len(text) > maxRefusal {
		text = strings.ToValidUTF8(text[:maxRefusal], "") + "..."
	}
	return "Status cannot be written: " + text + hint, hiccup
}

// isOldSchema reports whether the schema of the CRD lacks something that the status has. An
// admission policy may deny with the same code, but calls that forbidden.
func isOldSchema(answer metav1.Status) bool {
	return !deniedByWebhook(answer) && (strings.Contains(answer.Message, "field not declared in schema") ||
		answer.Reason == metav1.StatusReasonInvalid && strings.Contains(answer.Message, " is invalid: "))
}

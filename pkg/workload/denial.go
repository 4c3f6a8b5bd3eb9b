// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

const (
	// firstRetry is the delay before a denied write is retried. Each further denial doubles
	// it up to lastRetry. For a forbidden write the limit is forbiddenRetry: a permission
	// may be missing, and granting it enqueues nothing.
	firstRetry     = 200 * time.Millisecond
	forbiddenRetry = 30 * time.Second
	lastRetry      = 5 * time.Minute
	// unknownRetry is the longest delay before a retry if the denial is known to be
	// temporary.
	unknownRetry = time.Second
)

// write is the write that a Decision needs. The zero value means none.
type write struct {
	verb, deployment string
}

// denials remembers which writes the API server denied, so that each is retried after its
// delay and not at every event of the owner. The status write that reports a denial is such
// an event. If its message differs each time, as that of a webhook may, every try would
// cause the next.
type denials struct {
	byOwner *utilcache.Expiring // a denial by UID
}

// denial is the last denial of one owner's write.
type denial struct {
	generation int64 // of the owner; a denial of another generation does not count
	write      write
	count      int // consecutive denials
	blocker    *Blocker
	again      time.Time
}

// of returns the denial of the owner's next write and the remaining delay. It returns nil
// if the write may be tried now.
func (d denials) of(o Owner, next write, now time.Time) (*Blocker, time.Duration) {
	denial := d.get(o)
	if !denial.same(o, next) || !now.Before(denial.again) {
		return nil, 0
	}
	return denial.blocker, denial.again.Sub(now)
}

// get returns the denial of the owner, the zero value if there is none.
func (d denials) get(o Owner) denial {
	known, _ := d.byOwner.Get(o.GetUID())
	current, _ := known.(denial)
	return current
}

func (d denial) same(o Owner, next write) bool {
	return d.generation == o.GetGeneration() && d.write == next
}

// note records that a write was denied just now, with an error for which denialOf is not
// nil. It returns the blocker to report and the delay before the retry. The blocker is nil
// for an error that may be a single hiccup.
func (d denials) note(o Owner, denied write, err error, now time.Time) (*Blocker, time.Duration) {
	current := d.get(o)
	if !current.same(o, denied) {
		current = denial{generation: o.GetGeneration(), write: denied}
	}
	current.count++
	wait := min(firstRetry<<min(current.count-1, 20), lastRetry)
	if apierrors.IsForbidden(err) {
		wait = min(wait, forbiddenRetry)
	}
	switch s := denialOf(err).Status(); {
	case isTerminating(s):
		current.blocker = &Blocker{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("namespace %q is being deleted, and %s with it", o.GetNamespace(), o),
		}
		wait = lastRetry
	case isUnknownKind(s):
		current.blocker = &Blocker{
			Reason:  workloadv1alpha1.ReasonProgressing,
			Message: fmt.Sprintf("the API server has not yet discovered kind %s, whose CRD was just installed: %s", o.Kind.Kind, s.Message),
		}
		wait = min(wait, unknownRetry)
	case s.Code < http.StatusInternalServerError || current.count > 1:
		current.blocker = &Blocker{Reason: workloadv1alpha1.ReasonWriteDenied, Message: s.Message, Quotes: s.Code == http.StatusUnprocessableEntity}
	}
	current.again = now.Add(wait)
	d.byOwner.Set(o.GetUID(), current, wait+lastRetry) // entries of deleted owners expire
	return current.blocker, wait
}

// isUnknownKind reports whether the admission plugin OwnerReferencesPermissionEnforcement
// denied the owner reference because it has not discovered a new CRD yet. Discovery takes a
// few seconds.
func isUnknownKind(status metav1.Status) bool {
	return strings.Contains(status.Message, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping")
}

// isTerminating reports whether the write was denied because its namespace is being
// deleted.
func isTerminating(status metav1.Status) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == corev1.NamespaceTerminatingCause
	})
}

// forget removes the denial of an owner after a write that was not denied.
func (d denials) forget(o Owner) { d.byOwner.Delete(o.GetUID()) }

// denialOf returns the API status of an error if the API server denied the write on its
// merits: a quota, an admission policy, a webhook or a missing permission. It returns nil
// for all other errors.
func denialOf(err error) apierrors.APIStatus {
	if err == nil {
		return nil
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return nil
	}
	if deniedByWebhook(status.Status()) {
		return status
	}
	if apierrors.IsServerTimeout(err) {
		return nil
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError: // a webhook failed
		return status
	default:
		return nil
	}
}

// deniedByWebhook reports whether an admission webhook denied a write. A webhook may answer
// with any code from 400 on, also with one that has another meaning in the API server's own
// answers: a 404 does not mean that an object is gone, nor a 409 that one has changed.
func deniedByWebhook(status metav1.Status) bool {
	return strings.HasPrefix(status.Message, `admission webhook "`) && strings.Contains(status.Message, `" denied the request`)
}

// isLate reports whether the API server refused a write because the Deployment differs from
// the cached one. A conflict can have another cause, for example a ResourceQuota.
func isLate(err error, d *appsv1.Deployment) bool {
	status := apierrors.APIStatus(nil)
	if denialOf(err) != nil || !errors.As(err, &status) {
		return false
	}
	// details.Kind is not reliable: it may be a kind, a resource or a subresource.
	details := status.Status().Details
	return (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) &&
		details != nil && details.Group == appsv1.GroupName && details.Name == d.Name
}

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
	// firstRetry is after how long a denied write is tried again. Each further
	// denial doubles it, up to lastRetry, or up to forbiddenRetry if it is forbidden:
	// a permission may be missing, and its grant enqueues nothing.
	firstRetry     = 200 * time.Millisecond
	forbiddenRetry = 30 * time.Second
	lastRetry      = 5 * time.Minute
	// unknownRetry is after how long at most a write is tried again that is denied only
	// for a moment.
	unknownRetry = time.Second
)

// write is what a Decision asks of the API server; the zero value asks nothing.
type write struct {
	verb, deployment string
}

// denials remembers which writes the API server has denied, so that each is tried
// again when its time has come and not whenever something enqueues the owner. The
// status that tells of a denial does: if its words were new each time, as those of
// a webhook may be, then each try would cause the next.
type denials struct {
	byOwner *utilcache.Expiring // a denial by UID
}

// denial is what is remembered of one owner.
type denial struct {
	generation int64 // of the owner: with a new one it wants something new
	write      write
	count      int // of denials in a row
	blocker    *Blocker
	again      time.Time
}

// of returns the denial of the owner's next write and after how long to try it
// again, or nil if it may be tried now.
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

// note notes that a write was denied just now with an error of which there is a
// denialOf, and returns what to say of it and after how long to try again. There is
// nothing to say of what may be a hiccup.
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
			Message: fmt.Sprintf("the API server does not yet know %s everywhere, whose CRD was just installed: %s", o.Kind.Kind, s.Message),
		}
		wait = min(wait, unknownRetry)
	case s.Code < http.StatusInternalServerError || current.count > 1:
		current.blocker = &Blocker{Reason: workloadv1alpha1.ReasonWriteDenied, Message: s.Message, Quotes: s.Code == http.StatusUnprocessableEntity}
	}
	current.again = now.Add(wait)
	d.byOwner.Set(o.GetUID(), current, wait+lastRetry) // one that is gone does not come again
	return current.blocker, wait
}

// isUnknownKind tells whether the admission plugin OwnerReferencesPermissionEnforcement
// denied the owner reference because it has not yet heard of a new CRD, which takes it
// seconds.
func isUnknownKind(status metav1.Status) bool {
	return strings.Contains(status.Message, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping")
}

// isTerminating tells whether the write was denied because its namespace is being
// deleted.
func isTerminating(status metav1.Status) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == corev1.NamespaceTerminatingCause
	})
}

// forget forgets the denials of an owner, whose write was not denied.
func (d denials) forget(o Owner) { d.byOwner.Delete(o.GetUID()) }

// denialOf returns what the API server says about a write that it denies on its
// merits, for a quota, an admission policy, a webhook or a missing permission. It returns
// nil for a write that failed otherwise.
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
		http.StatusInternalServerError: // of a webhook that fails
		return status
	default:
		return nil
	}
}

// deniedByWebhook tells whether an admission webhook denied a write. It may answer with
// any code from 400 on, also with one that means something else from the API server
// itself: with 404 nothing need be gone, and with 409 nothing need have changed.
func deniedByWebhook(status metav1.Status) bool {
	return strings.HasPrefix(status.Message, `admission webhook "`) && strings.Contains(status.Message, `" denied the request`)
}

// isLate tells whether the API server refused a write because the Deployment is not, or no
// longer, as cached. A conflict can be over something else: a ResourceQuota, for example.
func isLate(err error, d *appsv1.Deployment) bool {
	status := apierrors.APIStatus(nil)
	if denialOf(err) != nil || !errors.As(err, &status) {
		return false
	}
	// Of details.Kind nothing is certain: it may be a kind, a resource or a subresource.
	details := status.Status().Details
	return (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) &&
		details != nil && details.Group == appsv1.GroupName && details.Name == d.Name
}

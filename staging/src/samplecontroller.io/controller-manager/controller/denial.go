// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/truncate"
)

// statusOfError returns what the API server answered. ok is false if there is no answer.
func statusOfError(err error) (answer metav1.Status, ok bool) {
	status := apierrors.APIStatus(nil)
	if err == nil || !errors.As(err, &status) {
		return answer, false
	}
	return status.Status(), true
}

// denialOf returns the answer of the API server if it denied a write on its merits: because of a
// quota, a policy or a webhook, or because the object is invalid.
func denialOf(err error) (answer metav1.Status, denied bool) {
	answer, ok := statusOfError(err)
	if !ok || doesNotApply(err) {
		return answer, false
	}
	switch answer.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return answer, true
	}
	return answer, deniedByWebhook(answer) && answer.Code < http.StatusInternalServerError
}

// deniedByWebhook reports whether an admission webhook denied a write. A webhook may answer with any
// code from 400 on, also with one that has another meaning in the answers of the API server itself: a
// 404 does not mean that an object is gone, nor a 409 that it has changed. With a code from 500 on, the
// webhook says that it failed.
func deniedByWebhook(answer metav1.Status) bool {
	return strings.HasPrefix(answer.Message, `admission webhook "`) &&
		strings.Contains(answer.Message, `" denied the request`)
}

// deniedByAdmission reports whether a webhook or a policy denied a write. A change of either can allow it.
func deniedByAdmission(answer metav1.Status) bool {
	return deniedByWebhook(answer) || strings.Contains(answer.Message, "ValidatingAdmissionPolicy '")
}

// isGone reports whether a write failed because the object does not exist.
func isGone(err error) bool { return apierrors.IsNotFound(err) && isAboutObject(err) }

// isConflict reports whether a write failed because the object has changed.
func isConflict(err error) bool { return apierrors.IsConflict(err) && isAboutObject(err) }

// isTaken reports whether an object could not be created because one with its name exists.
func isTaken(err error) bool { return apierrors.IsAlreadyExists(err) && isAboutObject(err) }

// isAboutObject reports whether the answer to a write is about the object: it is not that of a webhook, or about the
// token of an account.
func isAboutObject(err error) bool {
	answer, _ := statusOfError(err)
	return !deniedByWebhook(answer) && !errors.Is(err, connection.ErrNoToken)
}

// doesNotApply reports whether the API server could not apply a JSON patch to the stored object.
// Objects that are invalid have the same reason, but always with causes. Webhooks may give none.
func doesNotApply(err error) bool {
	answer, ok := statusOfError(err)
	return ok && apierrors.IsInvalid(err) && !deniedByAdmission(answer) &&
		(answer.Details == nil || len(answer.Details.Causes) == 0)
}

// isTerminating reports whether a write was denied because its namespace is being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isUnknownKind reports whether the admission plugin OwnerReferencesPermissionEnforcement denied an
// owner reference because it has not discovered a new CRD yet. That takes some seconds.
func isUnknownKind(answer metav1.Status) bool {
	return strings.Contains(answer.Message, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping")
}

// isOldSchema reports whether the schema of the CRD lacks something that a status has. A policy may
// deny with the same code, but says that the write is forbidden.
func isOldSchema(answer metav1.Status) bool {
	return !deniedByWebhook(answer) && (strings.Contains(answer.Message, "field not declared in schema") ||
		answer.Reason == metav1.StatusReasonInvalid && strings.Contains(answer.Message, " is invalid: ") ||
		hasUnknownField(answer))
}

// hasUnknownField reports whether the API server does not know a field of a patch. See [withoutObject].
func hasUnknownField(answer metav1.Status) bool {
	return answer.Reason == metav1.StatusReasonInvalid && strings.HasPrefix(answer.Message, "strict decoding error: ")
}

// withoutObject returns the error of a patch without the object that the API server quotes if it cannot
// decode the result. The error is reported to users, and kept in memory for each object that fails.
func withoutObject(err error) error {
	answer, _ := statusOfError(err)
	rest, ok := truncate.Object(answer.Message)
	if !ok {
		return err
	}
	answer.Message = rest
	answer.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Type: metav1.CauseTypeFieldValueInvalid, Field: "patch", Message: answer.Message,
	}}}
	return &apierrors.StatusError{ErrStatus: answer}
}

// hintAboutCRD returns what to do if the CRD lacks something that a denied write has, else "". A spec may
// also be invalid for other reasons.
func (w write) hintAboutCRD(answer metav1.Status) string {
	switch {
	case !w.custom || !isOldSchema(answer) || !w.status && !hasUnknownField(answer):
		return ""
	case w.own:
		return "; apply the CRDs of this version"
	default: // the CRD may be one of another program
		return "; apply a newer CRD of " + w.kind
	}
}

// causeOf returns why a write of a resource failed, with the usual reason if the error does not say it.
// As far as possible it is the same each time, because it is written to statuses.
func causeOf(err error, resource string) string {
	answer, ok := statusOfError(err)
	hint, hasHint := errors.AsType[*hinted](err)
	switch {
	case hasHint:
		return fmt.Sprintf("the API server answers %d: %s: %s", answer.Code, answer.Message, hint.hint)
	case isTimeout(err):
		return fmt.Sprintf("no answer within --write-timeout; an admission webhook for %s may hang", resource)
	case !ok:
		return "no answer from the API server: " + truncate.Text(rootOf(err).Error())
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return "each try conflicts with a change by another client: " + answer.Message
	case apierrors.IsTooManyRequests(err):
		return "the API server limits the rate of requests: " + answer.Message
	default:
		return fmt.Sprintf("the API server answers %d: %s", answer.Code, answer.Message)
	}
}

// rootOf returns the innermost error, which does not say what was being done and to which URL.
func rootOf(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// denialOf returns the API status of an error if the API server denied the write on its
// merits: a quota, an admission policy or a webhook. It returns nil for all other errors.
func denialOf(err error) *metav1.Status {
	answer := apierrors.APIStatus(nil)
	if err == nil || !errors.As(err, &answer) {
		return nil
	}
	status := answer.Status()
	switch status.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &status
	}
	if deniedByWebhook(status) && status.Code < http.StatusInternalServerError {
		return &status
	}
	return nil
}

// deniedByWebhook reports whether an admission webhook denied a write. A webhook may answer
// with any code from 400 on, also with one that has another meaning in the API server's own
// answers: a 404 does not mean that an object is gone, nor a 409 that one has changed. With one
// from 500 on it says that it failed.
func deniedByWebhook(status metav1.Status) bool {
	return strings.HasPrefix(status.Message, `admission webhook "`) && strings.Contains(status.Message, `" denied the request`)
}

// deniedByAdmission reports whether a webhook or a policy denied a write, which may pass once that
// has changed.
func deniedByAdmission(status metav1.Status) bool {
	return deniedByWebhook(status) || strings.Contains(status.Message, "ValidatingAdmissionPolicy '")
}

// isLate reports whether the API server refused a write because the Deployment differs from
// the cached one. A conflict can have another cause, for example a ResourceQuota.
func isLate(err error, d *appsv1.Deployment) bool {
	status := apierrors.APIStatus(nil)
	if denialOf(err) != nil || !errors.As(err, &status) || deniedByWebhook(status.Status()) {
		return false
	}
	// details.Kind is not reliable: it may be a kind, a resource or a subresource.
	details := status.Status().Details
	return (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) &&
		details != nil && details.Group == appsv1.GroupName && details.Name == d.Name
}

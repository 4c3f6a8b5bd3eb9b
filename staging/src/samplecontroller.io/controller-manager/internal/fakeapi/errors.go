// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c call) unsupported(what string) error {
	return statusError(http.StatusNotImplemented, "the in-memory API server does not support %s, as in %s %s: "+
		"test it on a real API server, with managertest.RunOn", what, c.Method, c.URL.Path)
}

// statusError returns an error that is the response of the API server.
func statusError(code int, format string, args ...any) error {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, true)
	err.ErrStatus.Message = fmt.Sprintf(format, args...)
	return err
}

// plainError returns an error without details.
func plainError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// invalid returns an error for a field of the metadata.
func (c call) invalid(name string, err *field.Error) error {
	return apierrors.NewInvalid(c.kind.GroupKind(), name, field.ErrorList{err})
}

// checkUpdate rejects a write that is based on another object or another version of it.
func (c call) checkUpdate(old, o *unstructured.Unstructured) error {
	resource, metadata := c.resource.GroupResource(), field.NewPath("metadata")
	if name := o.GetName(); name != "" && name != old.GetName() {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			name, old.GetName()))
	}
	unconditional := c.kind.builtIn && c.kind.Kind != "Lease"
	if c.Verb == "update" && !unconditional && o.GetResourceVersion() == "" {
		err := field.Invalid(metadata.Child("resourceVersion"), 0, "must be specified for an update")
		of := schema.GroupKind{Group: resource.Group, Kind: resource.Resource}
		return apierrors.NewInvalid(of, old.GetName(), field.ErrorList{err})
	}
	ignored := c.Subresource == "status" && !c.kind.builtIn // a real API server ignores it, too
	if uid := o.GetUID(); uid != "" && uid != old.GetUID() && !ignored {
		if c.Verb == "patch" {
			return c.invalid(old.GetName(), field.Invalid(metadata.Child("uid"), uid, "field is immutable"))
		}
		return apierrors.NewConflict(resource, old.GetName(), fmt.Errorf("StorageError: invalid object, Code: 4, "+
			"Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "+
			"UID in precondition: %s, UID in object meta: %s", c.resource.Resource, c.key(), uid, old.GetUID()))
	}
	if version := o.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return apierrors.NewConflict(resource, old.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// checkFinalizers rejects new finalizers of a deleted object.
func (c call) checkFinalizers(old, o *unstructured.Unstructured) error {
	added := sets.New(o.GetFinalizers()...).Difference(sets.New(old.GetFinalizers()...))
	if old.GetDeletionTimestamp() == nil || len(added) == 0 {
		return nil
	}
	return c.invalid(old.GetName(), field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf(
		"no new finalizers can be added if the object is being deleted, found new finalizers %#v", sets.List(added))))
}

// checkDelete rejects a deletion whose preconditions do not hold.
func (c call) checkDelete(old *unstructured.Unstructured, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	conflict := func(what string, want, got any, changed string) error {
		of := schema.GroupResource{Group: c.kind.Group, Resource: c.kind.Kind}
		return apierrors.NewConflict(of, old.GetName(), fmt.Errorf("the %s in the precondition (%v) does not match "+
			"the %s in record (%v). The object might have been %s", what, want, what, got, changed))
	}
	if p.UID != nil && *p.UID != old.GetUID() {
		return conflict("UID", *p.UID, old.GetUID(), "deleted and then recreated")
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
		return conflict("ResourceVersion", *p.ResourceVersion, old.GetResourceVersion(), "modified")
	}
	return nil
}

// checkNamespace rejects a new object in a namespace that does not exist or is deleted.
func (s *Server) checkNamespace(c call, name string) error {
	if c.Namespace == "" {
		return nil
	}
	namespace := s.objects[namespaces][types.NamespacedName{Name: c.Namespace}]
	if namespace == nil {
		return apierrors.NewNotFound(namespaces.GroupResource(), c.Namespace)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(c.resource.GroupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", c.Namespace))
	message := fmt.Sprintf("namespace %s is being terminated", c.Namespace)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: "NamespaceTerminating", Field: "metadata.namespace", Message: message},
	}
	return err
}

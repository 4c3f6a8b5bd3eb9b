// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// create stores a new object.
func (s *Server) create(c call) (*unstructured.Unstructured, error) {
	o, err := c.decode(c.body)
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		const set = "resourceVersion should not be set on objects to be created"
		return nil, plainError(http.StatusInternalServerError, "", set)
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(fmt.Sprintf("%s%05d", o.GetGenerateName(), s.version))
	}
	if o.GetName() == "" {
		return nil, c.invalid("", field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
	}
	if err := s.checkNamespace(c, o.GetName()); err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: c.Namespace, Name: o.GetName()}
	if c.resource.Resource == "events" && s.objects[c.resource][key] != nil {
		// client-go names an Event after its object and the time, which stands still in a bubble.
		key.Name += fmt.Sprintf(".%d", s.version)
		o.SetName(key.Name)
	}
	if s.objects[c.resource][key] != nil {
		return nil, apierrors.NewAlreadyExists(c.resource.GroupResource(), key.Name)
	}
	o.SetNamespace(c.Namespace)
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", s.version)))
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	o.SetDeletionTimestamp(nil)
	o.SetGeneration(0)
	if c.kind.generation {
		o.SetGeneration(1)
	}
	if c.kind.status {
		delete(o.Object, "status")
	}
	err = c.kind.complete(o, func(typed runtime.Object) { setAtCreation(typed, s.version) })
	if err == nil {
		err = s.accept(c, o, nil)
	}
	if err != nil {
		return nil, err
	}
	o.SetManagedFields(nil)
	c.manage(o)
	return s.store(c, nil, o), nil
}

// manage records the field manager of a write, like the API server, but not which fields it manages.
func (c call) manage(o *unstructured.Unstructured) {
	entry := metav1.ManagedFieldsEntry{
		Manager: c.URL.Query().Get("fieldManager"), Operation: metav1.ManagedFieldsOperationUpdate,
		Subresource: c.Subresource, APIVersion: o.GetAPIVersion(), Time: ptr.To(metav1.NewTime(time.Now())),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
	}
	if entry.Manager == "" {
		entry.Manager, _, _ = strings.Cut(c.UserAgent(), "/")
	}
	known := slices.DeleteFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == entry.Manager && m.Operation == entry.Operation && m.Subresource == entry.Subresource
	})
	o.SetManagedFields(append(known, entry))
}

// accept validates an object, and serves its kind if it is a CRD.
func (s *Server) accept(c call, o, old *unstructured.Unstructured) error {
	if c.kind.schema != nil {
		if errs := c.kind.schema.validate(c.Context(), c.Subresource, o, old); len(errs) > 0 {
			return apierrors.NewInvalid(c.kind.GroupKind(), o.GetName(), errs)
		}
	}
	if c.kind.GroupVersionKind == crdKind && c.Subresource == "" {
		return s.define(o)
	}
	return nil
}

// update replaces an object, unless nothing differs.
func (s *Server) update(c call, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := c.body, error(nil)
	if c.Verb == "patch" {
		if body, err = s.patched(c, old); err != nil {
			return nil, err
		}
	}
	o, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	if err := c.checkUpdate(old, o); err != nil {
		return nil, err
	}
	o = c.merge(old, o)
	if err := c.kind.complete(o); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(o.Object, old.Object) {
		return old, nil
	}
	if err := c.checkFinalizers(old, o); err != nil {
		return nil, err
	}
	if err := s.accept(c, o, old); err != nil {
		return nil, err
	}
	if c.kind.generation && c.changesContent(old, o) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
	c.manage(o)
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && c.resource != namespaces {
		s.store(c, o, nil)
		return o, nil
	}
	return s.store(c, old, o), nil
}

// merge returns the new object for an update: the status is written alone, and only the server writes
// some fields.
func (c call) merge(old, o *unstructured.Unstructured) *unstructured.Unstructured {
	status := old.Object["status"]
	if c.Subresource == "status" {
		status, o = o.Object["status"], old.DeepCopy()
	}
	if c.kind.status {
		delete(o.Object, "status")
		if status != nil {
			o.Object["status"] = status
		}
	}
	o.SetName(old.GetName())
	o.SetNamespace(old.GetNamespace())
	o.SetUID(old.GetUID())
	o.SetResourceVersion(old.GetResourceVersion())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetDeletionTimestamp(old.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	o.SetGeneration(old.GetGeneration())
	o.SetManagedFields(old.GetManagedFields())
	return o
}

// changesContent returns whether objects differ in more than metadata and status.
func (c call) changesContent(old, o *unstructured.Unstructured) bool {
	content := func(o *unstructured.Unstructured) map[string]any {
		content := map[string]any{}
		for field, value := range o.Object {
			if field != "metadata" && (field != "status" || !c.kind.status) {
				content[field] = value
			}
		}
		return content
	}
	return !equality.Semantic.DeepEqual(content(old), content(o))
}

// returned are the resources whose deletion answers with the object.
var returned = sets.New("persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas",
	"serviceaccounts", "services")

// delete removes an object, or marks it if it has finalizers. A Pod ends at once.
func (s *Server) delete(c call, old *unstructured.Unstructured) (any, error) {
	var options metav1.DeleteOptions
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &options); err != nil {
			return nil, err
		}
	}
	if err := c.checkDelete(old, options.Preconditions); err != nil {
		return nil, err
	}
	o := old.DeepCopy()
	switch ptr.Deref(options.PropagationPolicy, metav1.DeletePropagationBackground) {
	case metav1.DeletePropagationForeground:
		o.SetFinalizers(sets.List(sets.New(o.GetFinalizers()...).Insert(metav1.FinalizerDeleteDependents)))
	case metav1.DeletePropagationOrphan:
		return nil, c.unsupported("deletions that orphan dependents")
	}
	if c.kind.GroupVersionKind == crdKind {
		s.undefine(o)
	}
	stays := len(o.GetFinalizers()) > 0 || c.resource == namespaces
	if stays && old.GetDeletionTimestamp() != nil {
		return old, nil
	}
	if stays || c.kind.Kind == "Pod" {
		s.markDeleted(c, o)
	}
	switch {
	case stays:
		return c.view(s.store(c, old, o)), nil
	case c.resource.Group == "" && returned.Has(c.resource.Resource):
		s.store(c, old, nil)
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
		return c.view(o), nil
	}
	s.store(c, old, nil)
	return metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: old.GetName(), Group: c.resource.Group, Kind: c.resource.Resource, UID: old.GetUID(),
	}}, nil
}

// markDeleted marks an object as deleted.
func (s *Server) markDeleted(c call, o *unstructured.Unstructured) {
	now := metav1.NewTime(time.Now())
	o.SetDeletionTimestamp(&now)
	if c.resource == namespaces {
		o.Object["status"] = map[string]any{"phase": "Terminating"}
		return
	}
	grace := int64(0)
	o.SetDeletionGracePeriodSeconds(&grace)
	if o.GetGeneration() > 0 {
		o.SetGeneration(o.GetGeneration() + 1)
	}
}

// store writes or removes an object under the next version, unless the request is a dry run.
func (s *Server) store(c call, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	if c.Request.URL.Query().Get("dryRun") == metav1.DryRunAll {
		return next
	}
	s.version++
	if next != nil {
		next.SetResourceVersion(strconv.FormatInt(s.version, 10))
		if s.objects[c.resource] == nil {
			s.objects[c.resource] = map[types.NamespacedName]*unstructured.Unstructured{}
		}
		s.objects[c.resource][types.NamespacedName{Namespace: next.GetNamespace(), Name: next.GetName()}] = next
	} else {
		delete(s.objects[c.resource], types.NamespacedName{Namespace: old.GetNamespace(), Name: old.GetName()})
	}
	s.log = append(s.log, change{s.version, c.resource, old, next})
	close(s.changed)
	s.changed = make(chan struct{})
	return next
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
)

// create stores a new object.
func (s *Server) create(c call) (*unstructured.Unstructured, error) {
	o, err := decode(c, c.body)
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(fmt.Sprintf("%s%05d", o.GetGenerateName(), s.version))
	}
	if o.GetName() == "" {
		return nil, apierrors.NewInvalid(c.kind.GroupKind(), "", nil)
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
	if o.Object["spec"] != nil {
		o.SetGeneration(1)
	}
	delete(o.Object, "status")
	if kubescheme.Scheme.Recognizes(c.kind) {
		if err := addEmptyStatus(o); err != nil {
			return nil, err
		}
	}
	return s.store(c, nil, o), nil
}

// addEmptyStatus adds the fields of an empty status that have no omitempty. The API server encodes
// them, too, for its own kinds.
func addEmptyStatus(o *unstructured.Unstructured) error {
	typed, err := kubescheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return err
	}
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if status, ok := encoded["status"]; ok {
		o.Object["status"] = status
	}
	return err
}

// update replaces an object, unless nothing differs.
func (s *Server) update(c call, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := c.body, error(nil)
	if c.Verb == "patch" {
		if body, err = s.patched(c, old); err != nil {
			return nil, err
		}
	}
	o, err := decode(c, body)
	if err != nil {
		return nil, err
	}
	if err := c.check(old, o.GetUID(), o.GetResourceVersion()); err != nil {
		return nil, err
	}
	status := old.Object["status"]
	if c.Subresource == "status" {
		status, o = o.Object["status"], old.DeepCopy()
	}
	delete(o.Object, "status")
	if status != nil {
		o.Object["status"] = status
	}
	// A write does not change the fields that only the server sets.
	o.SetName(old.GetName())
	o.SetNamespace(old.GetNamespace())
	o.SetUID(old.GetUID())
	o.SetResourceVersion(old.GetResourceVersion())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetDeletionTimestamp(old.GetDeletionTimestamp())
	o.SetGeneration(old.GetGeneration())
	o.SetManagedFields(old.GetManagedFields())
	if equality.Semantic.DeepEqual(o.Object, old.Object) {
		return old, nil
	}
	if old.GetGeneration() > 0 && !equality.Semantic.DeepEqual(o.Object["spec"], old.Object["spec"]) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		s.store(c, o, nil)
		return o, nil
	}
	return s.store(c, old, o), nil
}

// patched applies the patch of the request to the object.
func (s *Server) patched(c call, old *unstructured.Unstructured) ([]byte, error) {
	document, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	switch kind := types.PatchType(c.Header.Get("Content-Type")); kind {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(c.body)
		if err != nil {
			return nil, err
		}
		patched, err := patch.Apply(document)
		if err != nil { // such as a failed test
			const code = http.StatusUnprocessableEntity
			return nil, apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return patched, nil
	case types.MergePatchType:
		return jsonpatch.MergePatch(document, c.body)
	case types.StrategicMergePatchType:
		typed, err := s.scheme.New(c.kind)
		if err != nil {
			return nil, err
		}
		return strategicpatch.StrategicMergePatch(document, c.body, typed)
	default:
		return nil, c.unsupported(fmt.Sprintf("a patch of type %q", kind))
	}
}

// delete removes an object, or marks it if it has finalizers.
func (s *Server) delete(c call, old *unstructured.Unstructured) (any, error) {
	var options metav1.DeleteOptions
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &options); err != nil {
			return nil, err
		}
	}
	if p := options.Preconditions; p != nil {
		var uid types.UID
		var version string
		if p.UID != nil {
			uid = *p.UID
		}
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if err := c.check(old, uid, version); err != nil {
			return nil, err
		}
	}
	if len(old.GetFinalizers()) == 0 {
		s.store(c, old, nil)
		return metav1.Status{Status: metav1.StatusSuccess}, nil
	}
	if old.GetDeletionTimestamp() != nil {
		return old, nil
	}
	now := metav1.NewTime(time.Now())
	o := old.DeepCopy()
	o.SetDeletionTimestamp(&now)
	return s.store(c, old, o), nil
}

// check rejects a write that is based on another object or another version of it.
func (c call) check(old *unstructured.Unstructured, uid types.UID, version string) error {
	if uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(c.resource.GroupResource(), old.GetName(), fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	if version != "" && version != old.GetResourceVersion() {
		return apierrors.NewConflict(c.resource.GroupResource(), old.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
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

// decode returns the object in a body.
func decode(c call, body []byte) (*unstructured.Unstructured, error) {
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(c.kind)
	return &o, nil
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
)

func fromUnstructured(o *unstructured.Unstructured, typed any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed)
}

// decode returns the object in a body.
func (c call) decode(body []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &o.Object); err != nil {
		return nil, err
	}
	if o.Object == nil {
		return nil, apierrors.NewBadRequest("the request has no object")
	}
	switch sent := o.GroupVersionKind(); {
	case sent == c.kind.GroupVersionKind || c.kind.builtIn && sent.Kind == "":
	case c.kind.builtIn:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s",
			sent.Kind, o.GetAPIVersion(), c.kind.Kind))
	case sent.Kind == "":
		return nil, apierrors.NewBadRequest("Object 'Kind' is missing")
	default:
		return nil, apierrors.NewInvalid(sent.GroupKind(), o.GetName(),
			field.ErrorList{field.Invalid(field.NewPath("kind"), sent.Kind, "must be "+c.kind.Kind)})
	}
	if namespace := o.GetNamespace(); namespace != "" && namespace != c.Namespace {
		const differs = "the namespace of the provided object does not match the namespace sent on the request"
		return nil, apierrors.NewBadRequest(differs)
	}
	o.SetGroupVersionKind(c.kind.GroupVersionKind)
	return o, c.checkFields(body, o)
}

// strict are the decoders of built-in kinds that do not accept unknown fields.
var strict = serializer.NewCodecFactory(kubescheme.Scheme, serializer.EnableStrict)

// checkFields rejects an object with fields that its kind does not have, if the request asks for that.
func (c call) checkFields(body []byte, o *unstructured.Unstructured) (err error) {
	if c.URL.Query().Get("fieldValidation") != metav1.FieldValidationStrict {
		return nil
	}
	switch {
	case c.kind.builtIn:
		_, _, err = strict.UniversalDeserializer().Decode(body, &c.kind.GroupVersionKind, nil)
	case c.kind.schema != nil:
		err = c.kind.schema.checkFields(o)
	}
	if err == nil {
		return nil
	}
	if c.Verb == "patch" {
		invalid := field.Invalid(field.NewPath("patch"), string(body), err.Error())
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{invalid})
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
		c.kind.Kind, c.kind.Version, c.kind.Kind, err))
}

// complete brings an object into the form that is stored: with defaults, and without unknown fields.
func (k *kind) complete(o *unstructured.Unstructured, change ...func(runtime.Object)) error {
	if k.schema != nil {
		k.schema.complete(o)
	}
	if !k.builtIn {
		return nil
	}
	typed, err := kubescheme.Scheme.New(k.GroupVersionKind)
	if err != nil {
		return err
	}
	if err := fromUnstructured(o, typed); err != nil {
		return err
	}
	setDefaults(typed)
	for _, f := range change {
		f(typed)
	}
	o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	o.SetGroupVersionKind(k.GroupVersionKind)
	return err
}

// patched applies the patch of the request to the object.
func (s *Server) patched(c call, old *unstructured.Unstructured) ([]byte, error) {
	document, err := old.MarshalJSON()
	if err != nil {
		return nil, err
	}
	switch patchType := types.PatchType(c.Header.Get("Content-Type")); patchType {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(c.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
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
		typed, err := s.scheme.New(c.kind.GroupVersionKind)
		if err != nil || !c.kind.builtIn {
			return nil, plainError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
				"the body of the request was in an unknown format - accepted media types include: "+
					"application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
		}
		return strategicpatch.StrategicMergePatch(document, c.body, typed)
	default:
		return nil, c.unsupported(fmt.Sprintf("a patch of type %q", patchType))
	}
}

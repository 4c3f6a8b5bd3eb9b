// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metadataOnly returns whether the response is to have only the metadata of objects.
func (c call) metadataOnly() bool {
	return strings.Contains(c.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// responseKind returns the kind of objects in the response.
func (c call) responseKind() schema.GroupVersionKind {
	if c.metadataOnly() {
		return metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return c.kind.GroupVersionKind
}

// view returns what the response contains of the object.
func (c call) view(o *unstructured.Unstructured) *unstructured.Unstructured {
	if !c.metadataOnly() {
		return o
	}
	partial := &unstructured.Unstructured{Object: map[string]any{"metadata": o.Object["metadata"]}}
	partial.SetGroupVersionKind(c.responseKind())
	return partial
}

// viewed is like view, for the results of a function that may fail.
func (c call) viewed(o *unstructured.Unstructured, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return c.view(o), nil
}

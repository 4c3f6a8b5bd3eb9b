// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// statusWrite writes a status to this version of the Foo. The status differs from the Foo's.
type statusWrite func(ctx context.Context, client samplev1alpha1client.FooInterface, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) (*samplev1alpha1.Foo, error)

// statusWrites are the kinds of status write.
var statusWrites = map[string]statusWrite{
	"update":      update,
	"apply":       apply,
	"merge-patch": mergePatch,
	"json-patch":  jsonPatch,
}

func update(ctx context.Context, client samplev1alpha1client.FooInterface, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) (*samplev1alpha1.Foo, error) {
	foo = foo.DeepCopy()
	foo.Status = status
	return client.UpdateStatus(ctx, foo, metav1.UpdateOptions{})
}

func apply(ctx context.Context, client samplev1alpha1client.FooInterface, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) (*samplev1alpha1.Foo, error) {
	applied := samplev1alpha1.Foo{
		TypeMeta:   metav1.TypeMeta{APIVersion: samplev1alpha1.SchemeGroupVersion.String(), Kind: "Foo"},
		ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Name, ResourceVersion: foo.ResourceVersion},
		Status:     status,
	}
	return patch(ctx, client, foo, types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "lowerbound", Force: ptr.To(true)})
}

func mergePatch(ctx context.Context, client samplev1alpha1client.FooInterface, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) (*samplev1alpha1.Foo, error) {
	fields, err := changedFields(foo.Status, status)
	if err != nil {
		return nil, err
	}
	return patch(ctx, client, foo, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"resourceVersion": foo.ResourceVersion},
		"status":   fields,
	}, metav1.PatchOptions{})
}

func jsonPatch(ctx context.Context, client samplev1alpha1client.FooInterface, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) (*samplev1alpha1.Foo, error) {
	fields, err := changedFields(foo.Status, status)
	if err != nil {
		return nil, err
	}
	operations := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": foo.ResourceVersion}}
	for field, value := range fields {
		operations = append(operations, map[string]any{"op": "add", "path": "/status/" + field, "value": value})
	}
	return patch(ctx, client, foo, types.JSONPatchType, operations, metav1.PatchOptions{})
}

func patch(ctx context.Context, client samplev1alpha1client.FooInterface, foo *samplev1alpha1.Foo, patchType types.PatchType, body any, options metav1.PatchOptions) (*samplev1alpha1.Foo, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of Foo %q: %w", foo.Name, err)
	}
	return client.Patch(ctx, foo.Name, patchType, encoded, options, "status")
}

// changedFields returns the fields of a status that differ from another status. Fields are
// never removed.
func changedFields(from, to samplev1alpha1.FooStatus) (map[string]json.RawMessage, error) {
	var before, fields map[string]json.RawMessage
	for status, into := range map[*samplev1alpha1.FooStatus]*map[string]json.RawMessage{&from: &before, &to: &fields} {
		encoded, err := json.Marshal(status)
		if err == nil {
			err = json.Unmarshal(encoded, into)
		}
		if err != nil {
			return nil, err
		}
	}
	for field := range before {
		if bytes.Equal(before[field], fields[field]) {
			delete(fields, field)
		}
	}
	return fields, nil
}

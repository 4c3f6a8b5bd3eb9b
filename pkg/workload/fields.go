// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
)

// Field is a field of a Deployment that an owner may declare.
type Field int

// The fields that an owner may declare.
const (
	Replicas Field = iota
	Image
	fieldCount
)

// Fields is a set of fields.
type Fields [fieldCount]bool

// any reports whether the set is not empty.
func (f Fields) any() bool { return f != Fields{} }

// several reports whether the set has more than one field.
func (f Fields) several() bool { return f == Fields{Replicas: true, Image: true} }

// declared returns what the owner declares for the field, "" if it leaves it to others.
func (o Owner) declared(f Field) string {
	switch {
	case f == Image:
		return o.Image
	case o.Replicas != nil:
		return fmt.Sprint(*o.Replicas)
	default:
		return ""
	}
}

// valueOf returns the field's value in the Deployment.
func valueOf(d *appsv1.Deployment, f Field) string {
	if f == Image {
		return imageOf(d)
	}
	return fmt.Sprint(replicasOf(d))
}

// differs reports whether the owner declares the field and the Deployment has another
// value.
func (o Owner) differs(d *appsv1.Deployment, f Field) bool {
	declared := o.declared(f)
	return declared != "" && declared != valueOf(d, f)
}

// declare sets fields of the Deployment to what the owner declares. It has the container.
func (o Owner) declare(d *appsv1.Deployment, fields Fields) {
	if fields[Replicas] {
		d.Spec.Replicas = ptr.To(*o.Replicas)
	}
	if !fields[Image] {
		return
	}
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == containerName {
			c.Image = o.Image
		}
	}
}

const defaultReplicas = 1 // of the API

// replicasOf returns the Deployment's spec.replicas, or the default if it is not set.
func replicasOf(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return defaultReplicas
	}
	return *deployment.Spec.Replicas
}

// imageOf returns the image of the owner's container, "" if there is no such container.
func imageOf(deployment *appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return container.Image
		}
	}
	return ""
}

// managedFields are the paths of the fields in metadata.managedFields.
var managedFields = [fieldCount][]string{
	Replicas: {"f:spec", "f:replicas"},
	Image:    {"f:spec", "f:template", "f:spec", "f:containers", fmt.Sprintf("k:{\"name\":%q}", containerName), "f:image"},
}

// managedBySpec caches the [Fields] of managedFields entries by their part from f:spec on. Most
// Deployments have the same ones, and parsing an entry takes longer than the rest of handling
// an event. The part before has the owner's UID.
var managedBySpec = lru.New(100)

// managed returns the fields that belong to the field manager of an entry.
func managed(entry metav1.ManagedFieldsEntry) (fields Fields) {
	if entry.FieldsV1 == nil || entry.Subresource == "status" {
		return Fields{}
	}
	raw := entry.FieldsV1.GetRawString()
	_, spec, ok := strings.Cut(raw, `"f:spec":`)
	if !ok {
		return Fields{}
	}
	if known, ok := managedBySpec.Get(spec); ok {
		return known.(Fields)
	}
	for f, path := range managedFields {
		fields[f] = hasPath([]byte(raw), path)
	}
	managedBySpec.Add(spec, fields)
	return fields
}

func hasPath(object []byte, path []string) bool {
	for _, name := range path {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(object, &members); err != nil || members[name] == nil {
			return false
		}
		object = members[name]
	}
	return true
}

// entriesFor are the entries that [trim] keeps: just the fields that managed looks for.
var entriesFor = map[Fields]*metav1.FieldsV1{
	{Replicas: true}:              metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	{Image: true}:                 metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"` + containerName + `\"}":{"f:image":{}}}}}}}`),
	{Replicas: true, Image: true}: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"` + containerName + `\"}":{"f:image":{}}}}}}}`),
}

// rivalOf names the field manager, other than ours, that set the field last.
func rivalOf(live *appsv1.Deployment, f Field, fieldManager string) string {
	rival, last := "an unknown writer", metav1.Time{}
	for _, entry := range live.ManagedFields {
		if managed(entry)[f] && entry.Manager != fieldManager && (entry.Time == nil || !entry.Time.Before(&last)) {
			rival = fmt.Sprintf("field manager %q", entry.Manager)
			if entry.Time != nil {
				last = *entry.Time
			}
		}
	}
	return rival
}

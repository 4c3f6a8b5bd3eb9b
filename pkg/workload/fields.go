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

// field is a field of a Deployment that an owner may declare.
type field int

// The fields that an owner may declare.
const (
	fieldReplicas field = iota
	fieldImage
	fieldCount
)

// fieldSet is a set of fields.
type fieldSet [fieldCount]bool

// any reports whether the set is not empty.
func (f fieldSet) any() bool { return f != fieldSet{} }

// several reports whether the set has more than one field.
func (f fieldSet) several() bool { return f == fieldSet{fieldReplicas: true, fieldImage: true} }

// declared returns what the owner declares for the field, "" if it leaves it to others.
func (o Owner) declared(f field) string {
	switch {
	case f == fieldImage:
		return o.Image
	case o.Replicas != nil:
		return fmt.Sprint(*o.Replicas)
	default:
		return ""
	}
}

// valueOf returns the field's value in the Deployment.
func valueOf(d *appsv1.Deployment, f field) string {
	if f == fieldImage {
		return imageOf(d)
	}
	return fmt.Sprint(replicasOf(d))
}

// correctedMessage says what a correction changed, and who had set it.
func correctedMessage(before, after *appsv1.Deployment, f field, fieldManager string) string {
	name := "replicas"
	if f == fieldImage {
		name = "image"
	}
	return fmt.Sprintf("Deployment %q: %s %s -> %s, changed by %s", before.Name, name, valueOf(before, f), valueOf(after, f),
		rivalOf(before, f, fieldManager))
}

// differs reports whether the owner declares the field and the Deployment has another
// value.
func (o Owner) differs(d *appsv1.Deployment, f field) bool {
	declared := o.declared(f)
	return declared != "" && declared != valueOf(d, f)
}

// declare sets fields of the Deployment to what the owner declares. It has the container.
func (o Owner) declare(d *appsv1.Deployment, fields fieldSet) {
	if fields[fieldReplicas] {
		d.Spec.Replicas = ptr.To(*o.Replicas)
	}
	if !fields[fieldImage] {
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
	fieldReplicas: {"f:spec", "f:replicas"},
	fieldImage: {"f:spec", "f:template", "f:spec", "f:containers", fmt.Sprintf("k:{\"name\":%q}", containerName),
		"f:image"},
}

// managedBySpec caches the [fieldSet] of managedFields entries by their part from f:spec on. Most
// Deployments have the same ones, and parsing an entry takes longer than the rest of handling
// an event. The part before has the owner's UID.
var managedBySpec = lru.New(100)

// managed returns the fields that belong to the field manager of an entry.
func managed(entry metav1.ManagedFieldsEntry) (fields fieldSet) {
	if entry.FieldsV1 == nil || entry.Subresource == "status" {
		return fieldSet{}
	}
	raw := entry.FieldsV1.GetRawString()
	_, spec, ok := strings.Cut(raw, `"f:spec":`)
	if !ok {
		return fieldSet{}
	}
	if known, ok := managedBySpec.Get(spec); ok {
		return known.(fieldSet)
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
var entriesFor = map[fieldSet]*metav1.FieldsV1{
	{fieldReplicas: true}:                   metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	{fieldImage: true}:                      metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"` + containerName + `\"}":{"f:image":{}}}}}}}`),
	{fieldReplicas: true, fieldImage: true}: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"` + containerName + `\"}":{"f:image":{}}}}}}}`),
}

// managerNamed names a field manager; "" is not known.
func managerNamed(manager string) string {
	if manager == "" {
		return "an unknown writer"
	}
	return fmt.Sprintf("field manager %q", manager)
}

// rivalOf names the field manager, other than ours, that set the field last.
func rivalOf(live *appsv1.Deployment, f field, fieldManager string) string {
	rival, last := "", metav1.Time{}
	for _, entry := range live.ManagedFields {
		if managed(entry)[f] && entry.Manager != fieldManager && (entry.Time == nil || !entry.Time.Before(&last)) {
			rival = entry.Manager
			if entry.Time != nil {
				last = *entry.Time
			}
		}
	}
	return managerNamed(rival)
}

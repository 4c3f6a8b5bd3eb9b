// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"samplecontroller.io/controller-manager/internal/misuse"
)

// recorder is a recorder that reports Events that are lost: about objects of unknown kinds, or of
// another type than Normal and Warning.
type recorder struct {
	record.EventRecorder
	context *Context
}

func (r *recorder) check(object runtime.Object, eventType string) {
	if eventType != corev1.EventTypeNormal && eventType != corev1.EventTypeWarning {
		r.context.shared.found(r.context.name, misuse.Errorf("an Event of type %q is lost: use %s or "+
			"%s", eventType, corev1.EventTypeNormal, corev1.EventTypeWarning))
	}
	if _, err := reference.GetReference(r.context.shared.Scheme, object); err != nil {
		r.context.shared.found(r.context.name, misuse.Errorf("an Event about a %T is lost: add its kind in "+
			"Program.Scheme: %w", object, err))
	}
}

// Event implements record.EventRecorder.
func (r *recorder) Event(object runtime.Object, eventType, reason, message string) {
	r.check(object, eventType)
	r.EventRecorder.Event(object, eventType, reason, message)
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	r.check(object, eventType)
	r.EventRecorder.Eventf(object, eventType, reason, format, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(
	object runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any,
) {
	r.check(object, eventType)
	r.EventRecorder.AnnotatedEventf(object, annotations, eventType, reason, format, args...)
}

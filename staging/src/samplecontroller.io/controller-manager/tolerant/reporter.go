// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
)

// ReasonUndecodable is the reason of the Event about an object that cannot be
// decoded.
const ReasonUndecodable = "Undecodable"

// errUndecodable is what the log says: why may quote what the object holds.
var errUndecodable = errors.New("its Event says why")

// maxReported bounds how many objects a Reporter remembers.
const maxReported = 4096

// Reporter tells people of undecodable objects: of each version once, by a Warning
// Event and by a line in the log, which leaves it to the Event to say why. Of more than
// 4096 objects at a time it may tell more often. It may be used by several goroutines,
// each for another object.
type Reporter struct {
	recorder record.EventRecorder
	reported *lru.Cache // the last version by UID
}

// NewReporter returns a Reporter that sends its Events by the recorder.
func NewReporter(recorder record.EventRecorder) *Reporter {
	return &Reporter{recorder: recorder, reported: lru.New(maxReported)}
}

// Object is an object of an API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Report tells whether the object is undecodable, so that its caller must leave it
// alone, and reports it if it is. The logger in ctx says which object it is.
func (r *Reporter) Report(ctx context.Context, obj Object) (undecodable bool) {
	err := DecodeError(obj)
	if err == nil {
		return false
	}
	if last, _ := r.reported.Get(obj.GetUID()); last != obj.GetResourceVersion() {
		r.reported.Add(obj.GetUID(), obj.GetResourceVersion())
		klog.FromContext(ctx).Error(errUndecodable, "Object cannot be decoded and is left alone", "resourceVersion", obj.GetResourceVersion())
		r.recorder.Eventf(obj, corev1.EventTypeWarning, ReasonUndecodable,
			"Cannot be decoded, so nothing is done for it: %v. Correct it, for example by kubectl edit, or delete it.", err)
	}
	return true
}

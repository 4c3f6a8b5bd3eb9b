// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
)

// ReasonUndecodable is the reason of the Event about an object that cannot be decoded.
const ReasonUndecodable = "Undecodable"

// errUndecodable is the logged error. The reason is not logged, because it may quote the
// object.
var errUndecodable = errors.New("see its Event for the reason")

// maxReported is the number of objects that a Reporter remembers.
const maxReported = 4096

// Reporter reports each version of an undecodable object once, by a Warning Event and a log
// line. Only the Event contains the reason. With more than 4096 such objects it may repeat
// reports. It is safe for concurrent use. Make it with [NewReporter].
type Reporter struct {
	recorder record.EventRecorder
	mutex    sync.Mutex
	reported *lru.Cache // the last version by UID
}

// NewReporter returns a Reporter that sends its Events to the recorder.
func NewReporter(recorder record.EventRecorder) *Reporter {
	return &Reporter{recorder: recorder, reported: lru.New(maxReported)}
}

// Object is an API object with its metadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// Report reports whether the object cannot be decoded, and records the Event and the log line if it
// cannot. Such an object is a placeholder, whose spec and status look empty: return without acting on
// it. The logger in ctx must identify the object.
func (r *Reporter) Report(ctx context.Context, obj Object) (undecodable bool) {
	err := DecodeError(obj)
	if err == nil {
		return false
	}
	if r.isNew(obj) {
		klog.FromContext(ctx).Error(errUndecodable, "Skipping object that cannot be decoded", "resourceVersion", obj.GetResourceVersion())
		r.recorder.Eventf(obj, corev1.EventTypeWarning, ReasonUndecodable,
			"Skipping object: failed to decode: %v. Fix it (for example, with kubectl edit) or delete it.", err)
	}
	return true
}

// isNew reports whether the version of the object has not been reported, and remembers it.
func (r *Reporter) isNew(obj Object) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	last, _ := r.reported.Get(obj.GetUID())
	r.reported.Add(obj.GetUID(), obj.GetResourceVersion())
	return last != obj.GetResourceVersion()
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// maxLogged is the maximum length of an error or a line of text in the log, in bytes. The message of
// a webhook may quote a whole object.
const maxLogged = 2000

// guard is a LogSink that throttles repeated errors, truncates long ones, and logs only the names of
// objects.
type guard struct {
	sink     logr.LogSink
	about    string // objects in the values of this logger
	throttle *throttle
}

var _ logr.CallDepthLogSink = guard{}

// guarded returns a logger that logs through a guard.
func guarded(logger logr.Logger) logr.Logger {
	sink := logger.GetSink()
	if _, ok := sink.(guard); ok {
		return logger
	}
	return logr.New(guard{sink: deeper(sink, 1), throttle: newThrottle()}) // for the frame of the guard
}

// Init does nothing, because the sink is already initialized.
func (g guard) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (g guard) Enabled(level int) bool { return g.sink.Enabled(level) }

// Info implements logr.LogSink. A line with an error among its values is throttled like an
// error, because client-go reports ended watches like that.
func (g guard) Info(level int, msg string, keysAndValues ...any) {
	keysAndValues = withoutContent(keysAndValues)
	for _, value := range keysAndValues {
		if err, ok := value.(error); ok {
			if keysAndValues, ok = g.allow(msg+textOf(err), keysAndValues); !ok {
				return
			}
			break
		}
	}
	g.sink.Info(level, msg, keysAndValues...)
}

// Error implements logr.LogSink.
func (g guard) Error(err error, msg string, keysAndValues ...any) {
	cause := msg
	if err != nil {
		err = truncated(err)
		cause += textOf(err)
	}
	keysAndValues, ok := g.allow(cause, withoutContent(keysAndValues))
	if ok {
		g.sink.Error(err, msg, keysAndValues...)
	}
}

// textOf returns the text of an error, or none if its Error panics, which klog survives, too.
func textOf(err error) (text string) {
	defer func() { _ = recover() }()
	return err.Error()
}

// truncated returns an error whose text is not too long for the log.
func truncated(err error) error {
	if text := textOf(err); len(text) > maxLogged {
		return errors.New(truncate.To(maxLogged, text))
	}
	return err
}

// allow returns whether a line with this cause may be logged now, and its values with the
// number of suppressed repetitions.
func (g guard) allow(cause string, keysAndValues []any) ([]any, bool) {
	ok, suppressed := g.throttle.allow(g.about+objects(keysAndValues), cause)
	if suppressed > 0 {
		keysAndValues = append(keysAndValues, "repeated", suppressed)
	}
	return keysAndValues, ok
}

// WithValues implements logr.LogSink.
func (g guard) WithValues(keysAndValues ...any) logr.LogSink {
	keysAndValues = withoutContent(keysAndValues)
	g.about += objects(keysAndValues)
	g.sink = g.sink.WithValues(keysAndValues...)
	return g
}

// WithName implements logr.LogSink.
func (g guard) WithName(name string) logr.LogSink {
	g.sink = g.sink.WithName(name)
	return g
}

// WithCallDepth implements logr.CallDepthLogSink.
func (g guard) WithCallDepth(depth int) logr.LogSink {
	g.sink = deeper(g.sink, depth)
	return g
}

func deeper(sink logr.LogSink, depth int) logr.LogSink {
	if s, ok := sink.(logr.CallDepthLogSink); ok {
		return s.WithCallDepth(depth)
	}
	return sink
}

// objects returns the object names in values from withoutContent. They distinguish lines
// about different objects.
func objects(keysAndValues []any) string {
	var all strings.Builder
	for i := 1; i < len(keysAndValues); i += 2 {
		switch value := keysAndValues[i].(type) {
		case klog.ObjectRef, cache.ObjectName, types.NamespacedName:
			fmt.Fprintf(&all, "%v ", value)
		case string:
			if !isStack(value) {
				all.WriteString(truncate.Text(value) + " ")
			}
		}
	}
	return all.String()
}

// isStack reports whether a value is a stack. Only these have several lines.
func isStack(value string) bool { return strings.Contains(value, "\n") }

// withoutContent returns the keys and values with objects replaced by their names, and long texts
// truncated.
func withoutContent(keysAndValues []any) []any {
	all := make([]any, len(keysAndValues), len(keysAndValues)+2) // allow may append two
	for i, value := range keysAndValues {
		all[i] = withoutContentOf(value)
	}
	return all
}

func withoutContentOf(value any) any {
	switch value := value.(type) {
	case *corev1.Event: // its own name is meaningless
		return klog.KRef(value.InvolvedObject.Namespace, value.InvolvedObject.Name)
	case metav1.Object:
		return klog.KObj(value)
	case runtime.Object:
		return fmt.Sprintf("%T", value)
	case error:
		return truncated(value)
	case string:
		if isStack(value) {
			return value
		}
		return truncate.To(maxLogged, value)
	default:
		return value
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

const secret = "s3cr3t"

// newGuarded returns a logger with a guard, and its output.
func newGuarded() (klog.Logger, *bytes.Buffer) {
	var log bytes.Buffer
	return guarded(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))), &log
}

func TestOnlyObjectNamesAreLogged(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: map[string]string{"note": secret}}
	tests := map[string]struct {
		log  func(klog.Logger)
		want string
	}{
		"value":               {func(l klog.Logger) { l.Info("Seen", "pod", &corev1.Pod{ObjectMeta: meta}) }, `"Seen" pod="default/a"`},
		"value of the logger": {func(l klog.Logger) { l.WithValues("pod", &corev1.Pod{ObjectMeta: meta}).Info("Seen") }, `"Seen" pod="default/a"`},
		"list": {func(l klog.Logger) { l.Info("Seen", "pods", &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: meta}}}) },
			`pods="*v1.PodList"`},
		"Event": {func(l klog.Logger) {
			l.Error(nil, "Lost", "event", &corev1.Event{Message: secret, InvolvedObject: corev1.ObjectReference{Name: "a"}})
		}, `"Lost" event="a"`},
		"error": {func(l klog.Logger) { l.Error(errors.New("broken"), "Failed", "n", 3) }, `"Failed" err="broken" n=3`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			logger, log := newGuarded()
			test.log(logger)
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log contains the content of an object: %s", log)
			}
			if !strings.Contains(log.String(), test.want) {
				t.Errorf("the log is %s, want it to contain %s", log, test.want)
			}
			if !strings.Contains(log.String(), " guard_test.go:") {
				t.Errorf("the log is %s, want the file of the caller in it", log)
			}
		})
	}
}

func TestLongTextsAreTruncated(t *testing.T) {
	long := strings.Repeat("word ", 4000)
	for name, write := range map[string]func(klog.Logger){
		"error":               func(l klog.Logger) { l.Error(errors.New(long), "Failed") },
		"error value":         func(l klog.Logger) { l.Info("Ended", "err", errors.New(long)) },
		"text":                func(l klog.Logger) { l.Info("Paused", "reason", long) },
		"value of the logger": func(l klog.Logger) { l.WithValues("reason", long).Info("Paused") },
	} {
		t.Run(name, func(t *testing.T) {
			logger, log := newGuarded()
			write(logger)
			if got := log.String(); len(got) < 2000 || len(got) > 2200 || !strings.Contains(got, `word ..."`) {
				t.Errorf("the line has %d bytes, want about 2000:\n%s", len(got), got)
			}
		})
	}
	logger, log := newGuarded()
	logger.Error(nil, "Panicked", "stack", strings.Repeat("main.go:1\n", 1000))
	if got := strings.Count(log.String(), "main.go:1"); got != 1000 {
		t.Errorf("%d lines of a stack are logged, want all 1000", got)
	}
}

// klog survives an error whose Error method panics.
func TestNilPointerErrorIsLogged(t *testing.T) {
	logger, log := newGuarded()
	var err *url.Error
	logger.Info("Done", "err", err)
	logger.Error(err, "Failed")
	for _, want := range []string{`"Done"`, `"Failed"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s, want it to contain %s", log, want)
		}
	}
}

func TestRepeatedErrorsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, log := newGuarded()
		refused := errors.New("connection refused")
		for i := range 250 { // 25 s
			logger.Error(refused, "Failed", "retries", i)
			logger.Error(refused, "Failed", "key", cache.NewObjectName("default", "a"), "stack", fmt.Sprintf("goroutine %d\n", i))
			logger.WithValues("key", "default/b").Error(refused, "Failed")
			logger.Info("Watch ended", "err", refused)
			logger.Info("Told")
			time.Sleep(100 * time.Millisecond)
		}
		for text, want := range map[string]int{
			`"Failed" err="connection refused" retries`: 3,
			`key="default/a"`: 3,
			`"Failed" err="connection refused" key="default/b"`: 3,
			`"Watch ended" err="connection refused"`:            3,
			`repeated=99`:                                       8,
			`"Told"`:                                            250,
		} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("%d lines have %s, want %d", got, text, want)
			}
		}
	})
}

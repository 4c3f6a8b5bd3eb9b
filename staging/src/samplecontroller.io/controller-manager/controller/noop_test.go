// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/writes"
)

// TestPatchThatChangesNothingIsTold sends patches to an API server that answers with the version that
// it got, as it does if it sets each field back to a default.
func TestPatchThatChangesNothingIsTold(t *testing.T) {
	p := newProcess(t, "https://api.test")
	p.Config.Transport = &slowAPI{code: 200} // answers with a ConfigMap without a resourceVersion
	registry := metrics.NewKubeRegistry()
	p.Metrics.Writes = writes.NewMetrics("test", registry.MustRegister)
	configMaps, err := newResource[*corev1.ConfigMap](&Context{process: p, name: "a-controller"}, "For", nil)
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	ctx := klog.NewContext(t.Context(), logger)
	before, after := &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	before.Namespace, before.Name, after.Namespace, after.Name = "team", "a", "team", "a"
	send := func(ctx context.Context, w sentWrite) error { return w.send(ctx) }
	err = leadership.RunWithoutElection(ctx, p.Gate, func(*leadership.Term) error {
		for range 3 {
			if _, err := configMaps.patch(ctx, send, before, after); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if strings.Count(log, "A patch changed nothing") != 1 || !strings.Contains(log, `paths=["/data"]`) {
		t.Errorf("the log is %q, want one line that names /data", log)
	}
	const note = "a patch of ConfigMap team/a changed nothing: the API server sets /data to other values, such as " +
		"defaults: set only the fields that the controller determines"
	if got := p.Note("a-controller"); got != note {
		t.Errorf("the note is %q, want %q", got, note)
	}
	want := `# HELP test_writes_noop_total [ALPHA] Number of patches that the API server accepted but that changed nothing, by controller and resource. They are part of writes_total. The log names the fields.
# TYPE test_writes_noop_total counter
test_writes_noop_total{controller="a-controller",resource="configmaps"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "test_writes_noop_total"); err != nil {
		t.Error(err)
	}
}

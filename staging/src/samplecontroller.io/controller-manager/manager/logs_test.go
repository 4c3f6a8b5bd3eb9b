// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
)

func TestVerbosityIsLowered(t *testing.T) {
	for flag, want := range map[string]struct{ flag, value string }{
		"-v=10":               {"v", "7"},
		"-v=7":                {"v", "7"},
		"-v=2":                {"v", "2"},
		"--vmodule=a=10,b*=3": {"vmodule", "a=7,b*=3"},
	} {
		t.Run(flag, func(t *testing.T) {
			t.Cleanup(func() { resetLogs(t) })
			resetLogs(t)
			o, fs := logs.NewOptions(), pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
			AddLogFlags(o, fs)
			if err := fs.Parse([]string{flag}); err != nil {
				t.Fatal(err)
			}
			if err := ApplyLogs(t.Context(), o, nil); err != nil {
				t.Fatal(err)
			}
			got := fs.Lookup(want.flag)
			if got.Value.String() != want.value {
				t.Errorf("--%s is %s, want %s", want.flag, got.Value, want.value)
			}
			if !strings.Contains(got.Usage, "above 7 counts as 7") {
				t.Errorf("the help of --%s does not say so: %s", want.flag, got.Usage)
			}
			if logger := klog.FromContext(t.Context()).V(8); logger.Enabled() {
				t.Error("V(8) is logged")
			}
			if _, ok := klog.FromContext(t.Context()).GetSink().(guard); !ok {
				t.Error("the logger of the process has no guard")
			}
		})
	}
}

// resetLogs takes back what [ApplyLogs] did to the process.
func resetLogs(t *testing.T) {
	t.Helper()
	if err := logsapi.ResetForTest(nil); err != nil {
		t.Fatal(err)
	}
	klog.ClearLogger()
	klog.StopFlushDaemon()
}

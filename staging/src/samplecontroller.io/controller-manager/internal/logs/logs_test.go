// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/logwriter"
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
			AddFlags(o, fs)
			if err := fs.Parse([]string{flag}); err != nil {
				t.Fatal(err)
			}
			if err := Apply(t.Context(), o, nil); err != nil {
				t.Fatal(err)
			}
			got := fs.Lookup(want.flag)
			if got.Value.String() != want.value {
				t.Errorf("--%s is %s, want %s", want.flag, got.Value, want.value)
			}
			if !strings.Contains(got.Usage, "above 7 counts as 7") {
				t.Errorf("the help of --%s does not mention the limit: %s", want.flag, got.Usage)
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

// TestLastLinesAreWritten logs right before and after the logs are flushed.
func TestLastLinesAreWritten(t *testing.T) {
	for name, test := range map[string]struct {
		flags          []string
		stderr, stdout string // lines in each stream
		contextless    bool   // without contextual logging
	}{
		"text":                  {nil, "an error, some info", "", false},
		"not contextual":        {nil, "an error, some info", "", true},
		"text, two streams":     {[]string{"--log-text-split-stream"}, "an error", "some info", false},
		"text, buffered stream": {[]string{"--log-text-split-stream", "--log-text-info-buffer-size=1M"}, "an error", "some info", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { resetLogs(t) })
			resetLogs(t)
			var errors, infos bytes.Buffer
			replaceStreams(t, &errors, &infos)
			gates := featuregate.NewFeatureGate()
			if err := logsapi.AddFeatureGates(gates); err != nil {
				t.Fatal(err)
			}
			if err := gates.SetFromMap(map[string]bool{string(logsapi.LoggingAlphaOptions): true,
				string(logsapi.ContextualLogging): !test.contextless}); err != nil {
				t.Fatal(err)
			}
			o, fs := logs.NewOptions(), pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
			AddFlags(o, fs)
			if err := fs.Parse(test.flags); err != nil {
				t.Fatal(err)
			}
			if err := Apply(t.Context(), o, gates); err != nil {
				t.Fatal(err)
			}
			klog.FromContext(t.Context()).Error(nil, "an error")
			klog.InfoS("some info")
			klog.Flush() // as cli.Run does

			for stream, got := range map[string]struct{ content, want string }{
				"stderr": {errors.String(), test.stderr}, "stdout": {infos.String(), test.stdout},
			} {
				var lines []string
				for _, line := range []string{"an error", "some info"} {
					if strings.Contains(got.content, line) {
						lines = append(lines, line)
					}
				}
				if strings.Join(lines, ", ") != got.want {
					t.Errorf("%s is %q, want it to contain: %s", stream, got.content, got.want)
				}
			}
		})
	}
}

// replaceStreams redirects the log until the end of the test.
func replaceStreams(t *testing.T, errors, infos io.Writer) {
	before := [...]*logwriter.Writer{stderr, stdout}
	stderr, stdout = logwriter.New(errors, reportLost("stderr")), logwriter.New(infos, reportLost("stdout"))
	t.Cleanup(func() { stderr, stdout = before[0], before[1] })
}

// stuck is a pipe without a reader until it is closed.
type stuck struct {
	closed chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.closed
	return s.Buffer.Write(p)
}

func TestDroppedLinesAreCountedAndReported(t *testing.T) {
	t.Cleanup(func() { resetLogs(t) })
	resetLogs(t)
	pipe := &stuck{closed: make(chan struct{})}
	replaceStreams(t, pipe, io.Discard)
	registry := metrics.NewKubeRegistry()
	NewMetrics("test", registry.CustomMustRegister)
	if err := Apply(t.Context(), logs.NewOptions(), nil); err != nil {
		t.Fatal(err)
	}
	logger := klog.FromContext(t.Context())
	long := strings.Repeat("x", 1<<19)
	for range 10 {
		logger.Info(long)
	}
	lost := stderr.Dropped()
	if lost < 7 || lost > 9 {
		t.Errorf("%d lines of half a MiB were dropped of 10, want 7 to 9", lost)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP test_log_dropped_lines_total [ALPHA] Number of log lines dropped because the log was not read or could not be written.
# TYPE test_log_dropped_lines_total counter
test_log_dropped_lines_total %d
`, lost))); err != nil {
		t.Error(err)
	}
	close(pipe.closed)
	Flush()
	reported := uint64(0) // in one line, or in two if the first lines are written late
	for _, match := range regexp.MustCompile(`"Dropped log lines, because the log could not be written" stream="stderr" lines=(\d+)`).FindAllStringSubmatch(pipe.String(), -1) {
		n, err := strconv.ParseUint(match[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		reported += n
	}
	if reported != lost {
		t.Errorf("%d dropped lines are reported, want %d", reported, lost)
	}
}

// resetLogs undoes the effect of [Apply] on the process.
func resetLogs(t *testing.T) {
	t.Helper()
	if err := logsapi.ResetForTest(nil); err != nil {
		t.Fatal(err)
	}
	klog.ClearLogger()
	klog.StopFlushDaemon()
}

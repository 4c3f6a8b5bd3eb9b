// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs applies the logging flags of a process: no line waits for its reader, objects
// are logged by name, and errors of one cause do not flood the log.
package logs

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/logwriter"
)

// MaxVerbosity is the highest verbosity of the log. Above it client-go logs the bodies
// of requests and answers: objects, and, in TokenReviews, the bearer tokens of callers.
const MaxVerbosity = 7

// AddFlags adds the flags of the log. For --logging-format=json the program must
// import k8s.io/component-base/logs/json/register.
func AddFlags(o *logs.Options, fs *pflag.FlagSet) {
	logsapi.AddFlags(o, fs)
	for _, name := range []string{"v", "vmodule"} {
		fs.Lookup(name).Usage += fmt.Sprintf("; a level above %d counts as %d: the log would show objects and tokens", MaxVerbosity, MaxVerbosity)
	}
}

// Validate returns what is wrong with the options, by the names of the flags. gates
// may be nil.
func Validate(o *logs.Options, gates featuregate.FeatureGate) []error {
	var errs []error
	for _, invalid := range logsapi.Validate(o, gates, nil) {
		errs = append(errs, fmt.Errorf("%s: %s", logFlag(invalid.Field), invalid.ErrorBody()))
	}
	return errs
}

// logFlag returns the flag of a field of the options.
func logFlag(field string) string {
	field, _, _ = strings.Cut(field, "[") // one of a list
	switch field {
	case "flushFrequency":
		return "--" + logsapi.LogFlushFreqFlagName
	case "verbosity":
		return "--v"
	case "vmodule":
		return "--vmodule"
	case "options.text.splitStream":
		return "--log-text-split-stream"
	case "options.text.infoBufferSize":
		return "--log-text-info-buffer-size"
	case "options.json.splitStream":
		return "--log-json-split-stream"
	case "options.json.infoBufferSize":
		return "--log-json-info-buffer-size"
	default:
		return "--logging-" + field
	}
}

// Apply makes the process log as the options say, but at most at
// [MaxVerbosity], to which it lowers them. Whoever logs, the libraries too: errors
// of one cause about one object are logged once in 10 s, and of an object only its name.
//
// A log that nobody reads stops nothing: lines are written by a goroutine of their own,
// which lives as long as the process if the log can never be written. What does not fit into
// a buffer of 1 MiB is dropped, and a line says how many lines that were when the log can be
// written again; see [NewMetrics]. From then on SIGPIPE does not end the process.
// So [Flush] must be called before the process ends.
//
// It must be called once in a process, before anything is started, with a context
// without a logger. gates may be nil.
func Apply(ctx context.Context, o *logs.Options, gates featuregate.FeatureGate) error {
	lowered := lower(&o.Verbosity)
	for i := range o.VModule {
		lowered = lower(&o.VModule[i].Verbosity) || lowered
	}
	if errs := logsapi.Validate(o, gates, nil); len(errs) > 0 {
		return errs.ToAggregate()
	}
	// The streams have buffers of their own, which are flushed at the end.
	unbuffered := o.DeepCopy()
	unbuffered.Options.Text.InfoBufferSize = resource.QuantityValue{}
	unbuffered.Options.JSON.InfoBufferSize = resource.QuantityValue{}
	if err := logsapi.ValidateAndApplyWithOptions(unbuffered, &logsapi.LoggingOptions{ErrorStream: stderr, InfoStream: stdout}, gates); err != nil {
		return err
	}
	// Go ends a process that writes to a standard stream whose reader is gone, unless it
	// asks for the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stderr.Open()
	stdout.Open()
	// It would flush while klog is locked, and there is nothing that waits to be flushed.
	klog.StopFlushDaemon()
	logger := guarded(klog.FromContext(ctx))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true), klog.FlushLogger(func() { both((*logwriter.Writer).Flush) }))
	if lowered {
		logger.Info("Verbosity of the log is lowered: above it the log would show objects and tokens", "verbosity", MaxVerbosity)
	}
	return nil
}

// The streams that the log is written to: of the process, which has its log once.
var (
	stderr = logwriter.New(os.Stderr, reportLost("stderr"))
	stdout = logwriter.New(os.Stdout, reportLost("stdout"))
)

func reportLost(stream string) func(lost uint64) {
	return func(lost uint64) {
		klog.Background().Info("Dropped log lines, because the log could not be written", "stream", stream, "lines", lost)
	}
}

// Flush writes what [Apply] has buffered, for at most 3 s if the log cannot be
// written, before the process ends. What is logged later is written within the same 3 s,
// before the call that logs it returns.
func Flush() { both((*logwriter.Writer).Close) }

// both does something that takes its time with both streams at once.
func both(do func(*logwriter.Writer)) {
	var wg sync.WaitGroup
	wg.Go(func() { do(stderr) })
	wg.Go(func() { do(stdout) })
	wg.Wait()
}

// lower lowers a level to what is allowed, and tells whether it was above that.
func lower(level *logsapi.VerbosityLevel) bool {
	if *level <= MaxVerbosity {
		return false
	}
	*level = MaxVerbosity
	return true
}

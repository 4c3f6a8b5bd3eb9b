// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs applies the logging flags of a process. Logging never blocks, objects are
// logged by name, and repeated errors are throttled.
package logs

import (
	"cmp"
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

// MaxVerbosity is the highest log verbosity. Above it client-go logs the bodies of requests
// and responses: objects, and in TokenReviews the bearer tokens of callers.
const MaxVerbosity = 7

// AddFlags adds the logging flags. For --logging-format=json the program must import
// k8s.io/component-base/logs/json/register.
func AddFlags(o *logs.Options, fs *pflag.FlagSet) {
	logsapi.AddFlags(o, fs)
	for _, name := range []string{"v", "vmodule"} {
		fs.Lookup(name).Usage += fmt.Sprintf("; a level above %d counts as %d, because it would log objects and tokens", MaxVerbosity, MaxVerbosity)
	}
	level := fs.Lookup("v")
	level.Value = &verbosity{Value: level.Value}
	fs.Lookup(logsapi.LogFlushFreqFlagName).Usage = unbuffered
	for _, format := range []string{"text", "json"} { // json only if the program imports it
		if size := fs.Lookup("log-" + format + "-info-buffer-size"); size != nil {
			size.Usage = unbuffered
		}
		if split := fs.Lookup("log-" + format + "-split-stream"); split != nil {
			split.Usage = strings.Replace(split.Usage, "single stream to stdout", "single stream to stderr", 1)
		}
	}
}

const unbuffered = "Has no effect, because lines are written at once."

// Validate returns all errors in the options. They name the flags. gates may be nil.
func Validate(o *logs.Options, gates featuregate.FeatureGate) []error {
	var errs []error
	for _, invalid := range logsapi.Validate(o, gates, nil) {
		if invalid.Field == "format" {
			invalid.Detail += ", must be text or json"
		}
		errs = append(errs, fmt.Errorf("%s: %s", logFlag(invalid.Field), invalid.ErrorBody()))
	}
	return errs
}

// logFlags are the flags for fields of the options. The others are called like their fields.
var logFlags = map[string]string{
	"flushFrequency":              logsapi.LogFlushFreqFlagName,
	"verbosity":                   "v",
	"vmodule":                     "vmodule",
	"options.text.splitStream":    "log-text-split-stream",
	"options.text.infoBufferSize": "log-text-info-buffer-size",
	"options.json.splitStream":    "log-json-split-stream",
	"options.json.infoBufferSize": "log-json-info-buffer-size",
}

// logFlag returns the flag for a field of the options.
func logFlag(field string) string {
	field, _, _ = strings.Cut(field, "[") // a list item
	return "--" + cmp.Or(logFlags[field], "logging-"+field)
}

// contextualGates enable contextual logging.
type contextualGates struct{ featuregate.FeatureGate }

// withContextualLogging returns gates with contextual logging. Without that, klog returns a logger
// that calls klog itself, and never ends if klog calls it. gates may be nil.
func withContextualLogging(gates featuregate.FeatureGate) featuregate.FeatureGate {
	if gates == nil {
		return nil // it is enabled by default
	}
	return contextualGates{gates}
}

// Enabled implements featuregate.FeatureGate.
func (g contextualGates) Enabled(key featuregate.Feature) bool {
	return key == logsapi.ContextualLogging || g.FeatureGate.Enabled(key)
}

// Apply configures the log of the process, including that of libraries. It lowers the
// verbosity in o to at most [MaxVerbosity]. Repeated errors with one cause about one object
// are logged once in 10 s. Objects are logged by name only. Errors and lines of text end after 2000
// bytes.
//
// Logging never blocks. A goroutine writes the lines; it lives as long as the process if the
// log can never be written. Lines that do not fit into a buffer of 1 MiB are dropped. When
// the log can be written again, a line reports how many were dropped; see [NewMetrics].
// After Apply, SIGPIPE does not end the process. Call [Flush] before the process ends.
//
// Call Apply once per process before anything else starts, with a context without a logger.
// gates may be nil.
func Apply(ctx context.Context, o *logs.Options, gates featuregate.FeatureGate) error {
	lowered := lower(&o.Verbosity)
	for i := range o.VModule {
		lowered = lower(&o.VModule[i].Verbosity) || lowered
	}
	if errs := logsapi.Validate(o, gates, nil); len(errs) > 0 {
		return errs.ToAggregate()
	}
	// The streams have their own buffers, which are flushed at the end.
	applied := o.DeepCopy()
	applied.Options.Text.InfoBufferSize = resource.QuantityValue{}
	applied.Options.JSON.InfoBufferSize = resource.QuantityValue{}
	if err := logsapi.ValidateAndApplyWithOptions(applied,
		&logsapi.LoggingOptions{ErrorStream: stderr, InfoStream: stdout}, withContextualLogging(gates)); err != nil {
		return err
	}
	// Go ends a process that writes to a standard stream without a reader, unless the process
	// handles the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// The daemon would flush while klog is locked, and klog has nothing to flush.
	klog.StopFlushDaemon()
	logger := guarded(klog.FromContext(ctx))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true), klog.FlushLogger(Flush))
	klog.EnableContextualLogging(gates == nil || gates.Enabled(logsapi.ContextualLogging))
	if lowered {
		logger.Info("Lowered log verbosity: higher levels would log objects and tokens", "verbosity", MaxVerbosity)
	}
	return nil
}

// The streams of the log. They are global because a process has only one log.
var (
	stderr = logwriter.New(os.Stderr, reportLost("stderr"))
	stdout = logwriter.New(os.Stdout, reportLost("stdout"))
)

func reportLost(stream string) func(lost uint64) {
	return func(lost uint64) {
		klog.Background().Info("Dropped log lines, because the log could not be written", "stream", stream, "lines", lost)
	}
}

// Flush writes the lines that [Apply] has buffered, before the process ends. It gives up after
// 3 s if the log cannot be written.
func Flush() {
	var wg sync.WaitGroup // a stream that cannot be written does not delay the other
	wg.Go(stderr.Flush)
	wg.Go(stdout.Flush)
	wg.Wait()
}

// ReportFailure reports the error that ends a process with these arguments, as its last line on
// stderr. With --logging-format=json the line is JSON, even if the error is about the flags.
func ReportFailure(args []string, err error) {
	defer Flush()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {} // --help must not print it
	format := flags.String("logging-format", "", "")
	_ = flags.Parse(args) // the error may be about other flags
	if *format != logsapi.JSONLogFormat {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return
	}
	o := logs.NewOptions()
	o.Format = *format
	_ = Apply(context.Background(), o, nil) // fails if it was applied before, which is as good
	klog.Background().Error(err, "Command failed")
}

// lower limits a level to the maximum, and reports whether it exceeded that.
func lower(level *logsapi.VerbosityLevel) bool {
	if *level <= MaxVerbosity {
		return false
	}
	*level = MaxVerbosity
	return true
}

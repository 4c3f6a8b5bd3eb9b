// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/server"
)

// AddLogFlags adds the flags of the log. For --logging-format=json the program must
// import k8s.io/component-base/logs/json/register.
func AddLogFlags(o *logs.Options, fs *pflag.FlagSet) {
	logsapi.AddFlags(o, fs)
	for _, name := range []string{"v", "vmodule"} {
		fs.Lookup(name).Usage += fmt.Sprintf("; a level above %d counts as %d: the log would show objects and tokens", server.MaxVerbosity, server.MaxVerbosity)
	}
}

// ValidateLogs returns what is wrong with the options, by the names of the flags. gates
// may be nil.
func ValidateLogs(o *logs.Options, gates featuregate.FeatureGate) []error {
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

// ApplyLogs has the process log as the options say, but at most at
// [server.MaxVerbosity], to which it lowers them. Whoever logs, the libraries too: errors
// of one cause about one object are logged once in 10 s, of an object only its name,
// and of a value that the API server finds invalid only its field.
//
// It must be called once in a process, before anything is started, with a context
// without a logger. gates may be nil.
func ApplyLogs(ctx context.Context, o *logs.Options, gates featuregate.FeatureGate) error {
	lowered := lower(&o.Verbosity)
	for i := range o.VModule {
		lowered = lower(&o.VModule[i].Verbosity) || lowered
	}
	if err := logsapi.ValidateAndApply(o, gates); err != nil {
		return err
	}
	logger := guarded(klog.FromContext(ctx))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	if lowered {
		logger.Info("Verbosity of the log is lowered: above it the log would show objects and tokens", "verbosity", server.MaxVerbosity)
	}
	return nil
}

// lower lowers a level to what is allowed, and tells whether it was above that.
func lower(level *logsapi.VerbosityLevel) bool {
	if *level <= server.MaxVerbosity {
		return false
	}
	*level = server.MaxVerbosity
	return true
}

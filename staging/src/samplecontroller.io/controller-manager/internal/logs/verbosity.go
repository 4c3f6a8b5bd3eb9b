// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
)

// SetVerbosity sets the log verbosity of a process that runs, but at most to [MaxVerbosity]. It returns a
// text for the user.
func SetVerbosity(value string) (string, error) {
	wanted, err := strconv.ParseUint(value, 10, 32)
	if err != nil || wanted <= MaxVerbosity {
		return logs.GlogSetter(value)
	}
	answer, err := logs.GlogSetter(strconv.Itoa(MaxVerbosity))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s instead of %d: above %d the log would contain objects and tokens", answer, wanted, MaxVerbosity), nil
}

// verbosity is the value of --v, which can change while the process runs.
type verbosity struct {
	pflag.Value // used until the process runs
	changed     atomic.Pointer[string]
}

// String implements pflag.Value.
func (v *verbosity) String() string {
	if text := v.changed.Load(); text != nil {
		return *text
	}
	if v.Value == nil {
		return "0" // pflag makes a zero value to recognize defaults
	}
	return v.Value.String()
}

// Prepare implements live.Setting.
func (v *verbosity) Prepare(text string) (commit func(), err error) {
	if _, err := strconv.ParseUint(text, 10, 31); err != nil {
		return nil, fmt.Errorf("%q is not a whole number from 0", text)
	}
	return func() {
		v.changed.Store(&text)
		_, _ = SetVerbosity(text) // fails only if it is not a number
	}, nil
}

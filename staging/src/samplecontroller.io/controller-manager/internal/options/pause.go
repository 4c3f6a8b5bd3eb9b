// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func (o *GenericOptions) addPauseFlag(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.PausedControllers, "paused-controllers", o.PausedControllers,
		"A list of controllers that write nothing for their objects but a condition that says so, each as 'name' or, to resume by itself, 'name=2026-01-02T15:04:05Z'. "+
			"Objects that are being deleted are not paused.")
}

// Paused returns the names of the paused controllers, and when each resumes; zero means never. A time that has
// passed is valid, so that a restart does not fail. The error has all mistakes in the flag.
func (o *GenericOptions) Paused() (map[string]time.Time, error) {
	paused := map[string]time.Time{}
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("--paused-controllers: "+format, args...))
	}
	for _, item := range o.PausedControllers {
		given, end, hasEnd := strings.Cut(item, "=")
		name, err := o.registry.Resolve(given)
		if err != nil {
			refuse("%w", err)
			continue
		}
		var until time.Time
		if hasEnd {
			if until, err = time.Parse(time.RFC3339, end); err != nil {
				refuse("%q is not a time: write for example %s=2026-01-02T15:04:05Z", end, given)
			}
		}
		if _, again := paused[name]; again {
			refuse("%s is named twice", name)
		}
		paused[name] = until
	}
	return paused, utilerrors.NewAggregate(errs)
}

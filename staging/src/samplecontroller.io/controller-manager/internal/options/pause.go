// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/live"
)

// Pauses is the value of --paused-controllers.
type Pauses struct {
	// Until has the names of the paused controllers, and when each resumes; zero means never. A time that has passed
	// is valid, so that a restart does not fail.
	Until map[string]time.Time

	items []string
	err   error // all mistakes
}

func (o *GenericOptions) addPauseFlag(fs *pflag.FlagSet) {
	fs.Var(o.PausedControllers, "paused-controllers",
		"A list of controllers that leave their objects alone, each as 'name' or, to resume by itself, 'name=2026-01-02T15:04:05Z'. "+
			"They write nothing but the condition Paused, and not even that where another controller owns the conditions. Objects that are being deleted are not paused.")
}

// newPauses returns the setting without paused controllers.
func newPauses(registry *controller.Registry) *live.Value[Pauses] {
	list := live.Strings()
	return live.New(live.Kind[Pauses]{
		Name: list.Name,
		Parse: func(text string) (Pauses, error) {
			items, err := list.Parse(text)
			return pausesOf(registry, items), err
		},
		Format: func(p Pauses) string { return list.Format(p.items) },
		Add:    func(a, b Pauses) Pauses { return pausesOf(registry, slices.Concat(a.items, b.items)) },
	}, Pauses{}, func(p Pauses) error { return p.err })
}

func pausesOf(registry *controller.Registry, items []string) Pauses {
	p := Pauses{Until: map[string]time.Time{}, items: items}
	var errs []error
	for _, item := range items {
		given, end, hasEnd := strings.Cut(item, "=")
		name, err := registry.Resolve(given)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var until time.Time
		if hasEnd {
			if until, err = time.Parse(time.RFC3339, end); err != nil {
				errs = append(errs, fmt.Errorf("%q is not a time: write for example %s=2026-01-02T15:04:05Z", end, given))
			}
		}
		if _, again := p.Until[name]; again {
			errs = append(errs, fmt.Errorf("%s is named twice", name))
		}
		p.Until[name] = until
	}
	p.err = utilerrors.NewAggregate(errs)
	return p
}

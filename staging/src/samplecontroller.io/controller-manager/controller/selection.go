// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Enabled returns the names of the controllers that a selection enables, sorted.
//
// A selection is what --controllers is given: "*" enables all that are on by
// default, "name" enables and "-name" disables one, by its name or an alias. As
// in kube-controller-manager the first item that names a controller decides,
// whatever comes later, and "*" counts only for those that no item names.
//
// Unlike there, an unknown name, a controller that is named both ways, and a
// selection that enables nothing are errors. All that is wrong is reported
// together, each with what to write instead.
func (r *Registry) Enabled(selection []string) ([]string, error) {
	var errs []error
	star := false
	explicit := map[string]bool{} // name: enabled
	for _, item := range selection {
		if item == "*" {
			star = true
			continue
		}
		given, off := strings.CutPrefix(item, "-")
		name, ok := r.names[given]
		if !ok {
			errs = append(errs, r.unknown(given))
			continue
		}
		if enabled, again := explicit[name]; !again {
			explicit[name] = !off
		} else if enabled == off {
			errs = append(errs, fmt.Errorf("%s is both enabled and disabled: name it once, for example *,-%s to enable all others", name, name))
		}
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	enabled := r.collect(func(d Descriptor) bool {
		if on, named := explicit[d.Name]; named {
			return on
		}
		return star && !d.DisabledByDefault
	})
	if len(enabled) == 0 {
		return nil, r.nothing(selection)
	}
	return enabled, nil
}

// unknown is the error for a name that is not registered.
func (r *Registry) unknown(given string) error {
	return fmt.Errorf("%q is not a known controller (known: %s)", given, strings.Join(r.known(), ", "))
}

// nothing is the error for a selection that enables no controller.
func (r *Registry) nothing(selection []string) error {
	given := strings.Join(selection, ",")
	onlyDisables := len(selection) > 0 && !slices.ContainsFunc(selection, func(item string) bool { return !strings.HasPrefix(item, "-") })
	if onlyDisables {
		return fmt.Errorf("%q only disables, and so enables no controller: to enable all others write *,%s", given, given)
	}
	return fmt.Errorf("%q enables no controller: write * for all, or name at least one of %s", given, strings.Join(r.Names(), ", "))
}

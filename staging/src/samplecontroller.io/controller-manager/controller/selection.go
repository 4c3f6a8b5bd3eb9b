// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Enabled returns the names of the controllers that a selection enables, sorted.
//
// A selection is the value of --controllers: "*" enables all controllers that are on by
// default, "name" enables one and "-name" disables one, by name or alias. As in
// kube-controller-manager, "*" applies only to controllers that no item names.
//
// Unlike there, Enabled returns an error if a name is unknown, if a controller is both enabled and
// disabled, or if the selection enables nothing. All errors are reported together, each with a
// correction.
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
			errs = append(errs, r.unusable(item))
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

// unusable returns the error for an item of a selection that names no controller.
func (r *Registry) unusable(item string) error {
	switch item {
	case "":
		return errors.New("an item is empty: remove the extra comma")
	case "-*":
		return fmt.Errorf("%q is not supported: name the controllers to enable, or use *,-%s", item, r.Names()[0])
	default:
		return r.unknown(strings.TrimPrefix(item, "-"))
	}
}

// unknown returns the error for a name that is not registered.
func (r *Registry) unknown(given string) error {
	return fmt.Errorf("%q is not a known controller (known: %s)", given, strings.Join(r.known(), ", "))
}

// nothing returns the error for a selection that enables no controller.
func (r *Registry) nothing(selection []string) error {
	given := strings.Join(selection, ",")
	onlyDisables := len(selection) > 0 && !slices.ContainsFunc(selection,
		func(item string) bool { return !strings.HasPrefix(item, "-") })
	if onlyDisables {
		return fmt.Errorf("%q disables controllers but enables none: use *,%s to enable all others", given, given)
	}
	return fmt.Errorf("%q enables no controller: use * for all, or name at least one of %s", given, strings.Join(r.Names(), ", "))
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
)

// Build makes the named controllers, sorted by name, with the resources of p. Call it once for each p.
//
// If a constructor panics or fails, the others are not affected: Build logs the error and returns,
// instead of the controller, one that fails with this error each time it is run. See
// [Unbuilt]. The informers that only this constructor has requested are removed.
//
// Build returns an error if a name is unknown, if no controller could be made, or if a constructor uses
// the library in a way that fails everywhere: for example if it returns no controller or one of another name, passes a
// kind to [For] that is not in the scheme, declares something after [Builder.Reconcile], or does not
// return all controllers that it has made.
func (r *Registry) Build(ctx context.Context, p *Shared, names []string) ([]Controller, error) {
	for _, name := range names {
		if _, ok := r.descriptor(name); !ok {
			return nil, r.unknown(name)
		}
	}
	p.enabled = slices.Clone(names)
	var controllers []Controller
	for _, d := range r.descriptors {
		if !slices.Contains(names, d.Name) {
			continue
		}
		undo := p.Informers.Undo()
		built, err := d.build(ctx, p.context(d, r.statusGroups()))
		allowed := writesAllowedBy(p.RulesOf(d))
		p.Metrics.Writes.Prepare(d.Name, allowed...)
		p.DryRun.Prepare(d.Name, allowed...)
		if misuse.Is(err) {
			return nil, err
		}
		if err != nil {
			undo()
			built = unbuilt{d.Name, err}
		}
		controllers = append(controllers, built)
	}
	failed := failures(controllers)
	if len(failed) > 0 && len(failed) == len(controllers) {
		return nil, Unbuilt(controllers)
	}
	for _, u := range failed {
		var stack []any
		if panicked, ok := errors.AsType[*reconcile.PanicError](u.err); ok {
			stack = []any{"stack", string(panicked.Stack)}
		}
		klog.FromContext(ctx).Error(u.err, "Failed to build controller, running only the others", append(stack, "controller", u.name)...)
	}
	return controllers, nil
}

// BuildSpare makes those controllers that [Registry.Build] was not told to make and that read no resource
// besides those that the others read, so that they can run later. Call it once, after Build. Constructors
// that fail are left out.
func (r *Registry) BuildSpare(ctx context.Context, p *Shared) []Controller {
	var spare []Controller
	for _, d := range r.descriptors {
		if slices.Contains(p.enabled, d.Name) {
			continue
		}
		read, undo := len(p.Informers.Resources()), p.Informers.Undo()
		built, err := d.build(ctx, p.context(d, r.statusGroups()))
		if err == nil && len(p.Informers.Resources()) > read {
			err = errors.New("it reads resources that no enabled controller reads")
		}
		if err != nil {
			undo()
			klog.FromContext(ctx).V(2).Info("Controller cannot be enabled without a restart", "controller", d.Name, "reason", err.Error())
			continue
		}
		p.Metrics.Writes.Prepare(d.Name, writesAllowedBy(p.RulesOf(d))...)
		spare = append(spare, built)
	}
	return spare
}

// build calls the constructor and checks the result.
func (d Descriptor) build(ctx context.Context, c *Context) (built Controller, err error) {
	defer func() {
		value := recover()
		if mistake, ok := value.(*misuse.Error); ok {
			err = mistake
		} else if value != nil {
			err = &reconcile.PanicError{Value: value, Stack: debug.Stack()}
		}
		if err != nil {
			built, err = nil, fmt.Errorf("building %s: %w", d.Name, err)
		}
	}()
	if built, err = d.New(ctx, c); err != nil {
		return nil, err
	}
	if built == nil {
		return nil, misuse.Errorf("its constructor returned no controller")
	}
	if got := built.Name(); got != d.Name {
		return nil, misuse.Errorf("its constructor returned a controller named %q: the controller and its loop must have the name of the descriptor", got)
	}
	if err := c.check(built); err != nil {
		return nil, err
	}
	return built, nil
}

// unbuilt stands for a controller whose constructor failed.
type unbuilt struct {
	name string
	err  error
}

func (u unbuilt) Name() string { return u.name }

func (u unbuilt) Run(context.Context) error {
	return fmt.Errorf("cannot run before this process is started again: %w", u.err)
}

func failures(controllers []Controller) []unbuilt {
	var failed []unbuilt
	for _, c := range controllers {
		if u, ok := c.(unbuilt); ok {
			failed = append(failed, u)
		}
	}
	return failed
}

// Unbuilt returns the errors of the constructors that failed for these controllers, which
// [Registry.Build] returned. It returns nil if there are none.
func Unbuilt(controllers []Controller) error {
	var errs []error
	for _, u := range failures(controllers) {
		errs = append(errs, u.err)
	}
	return errors.Join(errs...)
}

// descriptor returns the descriptor of the named controller.
func (r *Registry) descriptor(name string) (Descriptor, bool) {
	i := slices.IndexFunc(r.descriptors, func(d Descriptor) bool { return d.Name == name })
	if i < 0 {
		return Descriptor{}, false
	}
	return r.descriptors[i], true
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
)

// declares records a mistake if a declaration comes after Reconcile, which would ignore it, or if it has
// nil for a function.
func (b *Builder[T]) declares(declaration string, hasFunc bool) {
	if b.finished {
		b.fail(misuse.Errorf("%s: %s is called after Reconcile: declare all that the controller needs "+
			"before", b.context.name, declaration))
	}
	if !hasFunc {
		b.fail(misuse.Errorf("%s: %s needs a function, but got nil", b.context.name, declaration))
	}
}

// once records a mistake and returns false if a declaration for a resource is repeated.
func (b *Builder[T]) once(declaration string, resource schema.GroupVersionResource, instead string) bool {
	use := declaration + " " + resource.String()
	if b.uses.Has(use) {
		b.fail(misuse.Errorf("%s: %s is called twice for %s: call it once, %s",
			b.context.name, declaration, resource.Resource, instead))
		return false
	}
	if b.uses == nil {
		b.uses = sets.New[string]()
	}
	b.uses.Insert(use)
	return true
}

// fail records a mistake, which Reconcile returns, or [Registry.Build] if it has returned.
func (b *Builder[T]) fail(err error) {
	switch {
	case err == nil:
	case b.finished:
		b.context.mistakes = append(b.context.mistakes, err)
	default:
		b.errs = append(b.errs, err)
	}
}

// check returns an error if the constructor of a controller has made a mistake.
func (c *Context) check(built Controller) error {
	if len(c.mistakes) > 0 {
		return misuse.New(errors.Join(c.mistakes...))
	}
	if c.unfinished != 0 {
		return misuse.Errorf("each kind given to For needs one call of Reconcile")
	}
	looper, ok := built.(interface{ Loops() []*reconcile.Loop })
	if !ok {
		return nil // a controller of its own, which may run others
	}
	if missing := sets.New(c.loops...).Delete(looper.Loops()...); len(missing) > 0 {
		return misuse.Errorf("its constructor has made %d controllers with For, but returned only %d: return Join of "+
			"all", len(c.loops), len(c.loops)-len(missing))
	}
	return nil
}

// scopeError returns the error for an object that shows that the declared scope of the kind is wrong.
func (r *resource[T]) scopeError(key cache.ObjectName) error {
	if r.cluster {
		return misuse.Errorf("%s %s has a namespace, but %s was given the option ClusterScoped: remove "+
			"it", r.kind.Kind, key, r.use)
	}
	return misuse.Errorf("%s %s has no namespace: give %s the option ClusterScoped", r.kind.Kind, key, r.use)
}

// misplaced returns the error for the key of no object, which cannot be that of an object of the kind.
func (b *Builder[T]) misplaced(key cache.ObjectName) error {
	has := "has a namespace, but the key has none"
	if b.resource.cluster {
		has = "has no namespace, but the key has one"
	}
	return fmt.Errorf("key %s was enqueued by a function of Watch, WatchAs or Source: a %s %s",
		key, b.resource.kind.Kind, has)
}

// inScope returns keys for the objects of a kind that is read or owned. An object that shows that the
// declared scope of the kind is wrong could never be found by its name.
func inScope[O reconcile.Object, T, P Object](
	b *Builder[P], r *resource[T], keys func(O) []cache.ObjectName,
) func(O) []cache.ObjectName {
	return func(object O) []cache.ObjectName {
		if (object.GetNamespace() == "") != r.cluster {
			b.context.shared.found(b.context.name, r.scopeError(cache.NewObjectName(object.GetNamespace(), object.GetName())))
			return nil
		}
		return keys(object)
	}
}

// mistake is one that shows while a controller runs, and remains until the program is changed.
type mistake struct {
	error
	since time.Time
}

// found records the first mistake of a controller.
func (s *Shared) found(name string, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.mistakes[name].error != nil {
		return
	}
	if s.mistakes == nil {
		s.mistakes = map[string]mistake{}
	}
	s.mistakes[name] = mistake{err, time.Now()}
}

func (s *Shared) mistakeOf(name string) mistake {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.mistakes[name]
}

// Mistake returns a mistake of the program that has shown since the controller runs, such as a wrongly
// declared scope, or nil. The controller is Degraded until the program is changed.
func (c *Context) Mistake() error { return c.shared.mistakeOf(c.name).error }

// hinted is an error with a hint at its cause.
type hinted struct {
	error
	hint string
}

func (h *hinted) Error() string { return h.error.Error() + ": " + h.hint }

func (h *hinted) Unwrap() error { return h.error }

// note records what people should know of a controller. The first note counts.
func (s *Shared) note(name, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.notes == nil {
		s.notes = map[string]string{}
	}
	s.notes[name] = cmp.Or(s.notes[name], text)
}

// Note returns what people should know of a controller although it works: what is paused, or that it sends
// patches which change nothing. It returns "" if there is nothing.
func (s *Shared) Note(name string) string {
	paused := s.PausesOf(name).String()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return cmp.Or(paused, s.notes[name])
}

// hint adds to the error of a creation what its cause may be.
func (r *resource[T]) hint(err error) error {
	switch {
	case r.cluster && apierrors.IsMethodNotSupported(err):
		return &hinted{err, fmt.Sprintf("if a %s has a namespace, do not give Owns the option ClusterScoped", r.kind.Kind)}
	case !r.cluster && apierrors.IsNotFound(err) && nameOf(err) == "": // else it is that of a namespace
		return &hinted{err, fmt.Sprintf("if a %s has no namespace, give Owns the option ClusterScoped", r.kind.Kind)}
	}
	return err
}

// nameOf returns the name of the object that an API error is about.
func nameOf(err error) string {
	answer, _ := statusOfError(err)
	if answer.Details == nil {
		return ""
	}
	return answer.Details.Name
}

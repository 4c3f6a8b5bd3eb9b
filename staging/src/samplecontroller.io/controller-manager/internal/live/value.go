// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live has values of flags that can change while the process runs: see --config.
package live

import (
	"sync/atomic"

	"github.com/spf13/pflag"
)

// Setting is the value of a flag that can change while the process runs. Its methods other than Set are
// safe for concurrent use.
type Setting interface {
	pflag.Value
	// Prepare checks a new value. commit makes it the current one. Nothing changes before that.
	Prepare(text string) (commit func(), err error)
}

// Value is a [Setting] of type T. Make it with [New].
type Value[T any] struct {
	kind    Kind[T]
	check   func(T) error
	set     bool // by Set
	current atomic.Pointer[T]
}

// Kind is how values of a type are written.
type Kind[T any] struct {
	// Name is shown by --help.
	Name   string
	Parse  func(string) (T, error)
	Format func(T) string
	// Add returns the value of a flag that is given twice. Optional: by default the last one counts.
	Add func(first, second T) T
}

// New returns a setting with a default. check returns what is wrong with a value, nil if nothing is; it
// may be nil.
func New[T any](kind Kind[T], value T, check func(T) error) *Value[T] {
	v := &Value[T]{kind: kind, check: check}
	v.current.Store(&value)
	return v
}

// Get returns the current value.
func (v *Value[T]) Get() T { return *v.current.Load() }

// String implements pflag.Value.
func (v *Value[T]) String() string {
	if v.kind.Format == nil {
		return "" // pflag makes a zero value to recognize defaults
	}
	return v.kind.Format(v.Get())
}

// Type implements pflag.Value.
func (v *Value[T]) Type() string { return v.kind.Name }

// Set implements pflag.Value. It does not check the value: see [Value.Check].
func (v *Value[T]) Set(text string) error {
	value, err := v.kind.Parse(text)
	if err != nil {
		return err
	}
	if v.set && v.kind.Add != nil {
		value = v.kind.Add(v.Get(), value)
	}
	v.set = true
	v.current.Store(&value)
	return nil
}

// Check returns what is wrong with the current value, or nil.
func (v *Value[T]) Check() error {
	if v.check == nil {
		return nil
	}
	return v.check(v.Get())
}

// Also adds a check, after the others.
func (v *Value[T]) Also(check func(T) error) {
	first := v.check
	v.check = func(value T) error {
		if first != nil {
			if err := first(value); err != nil {
				return err
			}
		}
		return check(value)
	}
}

// Prepare implements Setting.
func (v *Value[T]) Prepare(text string) (commit func(), err error) {
	value, err := v.kind.Parse(text)
	if err == nil && v.check != nil {
		err = v.check(value)
	}
	if err != nil {
		return nil, err
	}
	return func() { v.current.Store(&value) }, nil
}

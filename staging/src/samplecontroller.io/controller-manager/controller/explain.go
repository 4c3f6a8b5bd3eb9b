// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/tolerant"
)

// Explainer is a controller that can explain what it does about an object, or why it does
// nothing. It is called rarely, for people who debug, while the controller runs or is on
// standby. Controllers with [Builder.Explain] are Explainers.
type Explainer interface {
	// Explain returns the explanation for the object with the key, which may not exist. It reads
	// only from caches, must not write or call the API, and must be safe for concurrent use.
	Explain(key cache.ObjectName) (Explanation, error)
}

// Explanation describes what a controller does about one object. It holds names, counts and
// reasons, and nothing that callers who may see the state of controllers must not see.
type Explanation struct {
	// Found is whether the cache contains the object. If not, only Next is set.
	Found bool `json:"found"`
	// Facts compare the desired with the actual state.
	Facts []Fact `json:"facts,omitempty"`
	// Next is the next write, or why there is none.
	Next string `json:"next"`
}

// Fact compares one aspect of the desired and the actual state.
type Fact struct {
	// Name is the name of the aspect, such as "replicas".
	Name string `json:"name"`
	// Wanted is the desired value and Actual the current one. Either may be empty.
	Wanted string `json:"wanted,omitempty"`
	Actual string `json:"actual,omitempty"`
	// Differs is whether the controller regards Actual as different from Wanted.
	Differs bool `json:"differs,omitempty"`
}

// NewFact returns a fact that differs if wanted and actual are not equal.
func NewFact(name, wanted, actual string) Fact {
	return Fact{Name: name, Wanted: wanted, Actual: actual, Differs: wanted != actual}
}

// explained is a controller with [Builder.Explain].
type explained[T Object] struct{ *built[T] }

// Explain implements Explainer.
func (c *explained[T]) Explain(key cache.ObjectName) (Explanation, error) {
	b := c.builder
	object, found, err := b.resource.cached(key)
	switch {
	case err != nil:
		return Explanation{}, fmt.Errorf("reading %s %s from the cache: %w", b.resource.kind.Kind, key, err)
	case !found:
		next := fmt.Sprintf("nothing: the cache has no %s %s", b.resource.kind.Kind, key)
		return Explanation{Next: next}, nil
	case tolerant.DecodeError(object) != nil:
		// The error may quote contents of the object.
		return Explanation{Found: true, Next: "nothing: the object cannot be decoded; see its Event for the error"}, nil
	case object.GetDeletionTimestamp() != nil && !b.onDeletion:
		return Explanation{Found: true, Next: "nothing: the object is being deleted"}, nil
	}
	r := &Request[T]{builder: b, key: key, object: object, found: true}
	r.over.Store(true)
	explanation := b.explain(r)
	explanation.Found = true
	if failing := b.failures.explain(key, object.GetUID(), object.GetGeneration()); failing != "" {
		explanation.Next = failing
	}
	if p, err := b.pauseOf(object); p != nil {
		explanation.Next = p.next()
		return explanation, nil
	} else if err != nil {
		explanation.Next = "nothing until namespaces are read, because one may be paused; then: " + explanation.Next
	}
	if late := b.consistency.Stale(key); late != "" {
		explanation.Next = late + "; then: " + explanation.Next
	}
	return explanation, nil
}

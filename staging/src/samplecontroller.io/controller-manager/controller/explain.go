// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/client-go/tools/cache"
)

// Explainer is a controller that can explain what it does about an object, or why it does
// nothing. It is called rarely, for people who debug, while the controller runs or is on
// standby.
type Explainer interface {
	// Explain reads only from caches. It must not write or call the API.
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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/client-go/tools/cache"
)

// Explainer is a controller that can tell what it does about an object, and why it does
// nothing. It is asked by people, seldom, while the controller runs or stands by.
type Explainer interface {
	// Explain reads only caches. It neither writes nor calls the API.
	Explain(key cache.ObjectName) (Explanation, error)
}

// Explanation is what a controller says of one object. It holds names, counts and
// reasons, and nothing that whoever may see the state of controllers may not see.
type Explanation struct {
	// Found says whether the cache has the object. If not, only Next says something.
	Found bool `json:"found"`
	// Facts are what the object asks for and what is there.
	Facts []Fact `json:"facts,omitempty"`
	// Next is what would be written now, or why nothing is.
	Next string `json:"next"`
}

// Fact is one thing that is wanted and is so, or is not.
type Fact struct {
	Name string `json:"name"`
	// Wanted is what the object asks for, Actual what is there. Either may be empty.
	Wanted string `json:"wanted,omitempty"`
	Actual string `json:"actual,omitempty"`
	// Differs says that the controller takes Actual for another than Wanted.
	Differs bool `json:"differs,omitempty"`
}

// NewFact returns a fact that differs if the two are not the same.
func NewFact(name, wanted, actual string) Fact {
	return Fact{Name: name, Wanted: wanted, Actual: actual, Differs: wanted != actual}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"hash/maphash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ownerEntries is the number of entries in an index by owner. An entry of an index takes 300 bytes for its
// first object, and most owners have only one object of a kind. So owners share entries, which in return
// have objects of others.
const ownerEntries = 2048

var ownerSeed = maphash.MakeSeed()

// ownerEntry returns the entry of an owner in an index.
func ownerEntry(owner types.UID) string {
	return string(rune(maphash.String(ownerSeed, string(owner)) % ownerEntries))
}

// index returns the name of the index by owner.
func (o *Owned[T, P]) index() string {
	return o.owner.context.name + ": owned by " + o.owner.resource.name.String()
}

// owners returns the values of an object in that index.
func (o *Owned[T, P]) owners(obj any) ([]string, error) {
	if reference := o.owner.referenceOf(obj.(T)); reference != nil {
		return []string{ownerEntry(reference.UID)}, nil
	}
	return nil, nil
}

// List returns copies of the cached objects that the reconciled object owns, in all namespaces or in
// that of [Owned.In], in no particular order. Objects that cannot be decoded are left out. It returns
// none if the reconciled object is gone.
func (o *Owned[T, P]) List(r *Request[P]) []T {
	if !r.found {
		return nil
	}
	reader := o.resource.reader()
	entry := reader.entry(o.index(), ownerEntry(r.object.GetUID()))
	owned := reader.copiesOf(slices.DeleteFunc(entry, func(obj any) bool {
		object := obj.(T)
		return !metav1.IsControlledBy(object, r.object) || o.namespace != "" && object.GetNamespace() != o.namespace
	}))
	for _, object := range owned {
		o.note(r, object)
	}
	return owned
}

// note records that an object exists that the reconciled one owns.
func (o *Owned[T, P]) note(r *Request[P], object T) {
	if r.found {
		o.owner.confirmations.note(r.object.GetUID(), o.dependent(cache.MetaObjectToName(object)))
	}
}

// dependent returns the name of an owned object among those of all kinds.
func (o *Owned[T, P]) dependent(key cache.ObjectName) string {
	return o.resource.name.Resource + "/" + key.String()
}

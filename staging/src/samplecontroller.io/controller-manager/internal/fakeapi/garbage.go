// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// CollectGarbage does what controllers of Kubernetes do: it deletes objects whose owners no longer exist
// and what a deleted Namespace contains, and ends deletions that wait for this.
func (s *Server) CollectGarbage() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for s.collect() {
	}
}

// collect returns whether it has changed an object.
func (s *Server) collect() bool {
	before := s.version
	owners, blocked := s.owners()
	for resource, objects := range s.objects {
		for key, o := range objects {
			c := s.own(resource, key)
			namespace := s.objects[namespaces][types.NamespacedName{Name: key.Namespace}]
			switch {
			case resource == namespaces && o.GetDeletionTimestamp() != nil:
				if !s.hasContent(key.Name) {
					s.store(c, o, nil)
				}
			case o.GetDeletionTimestamp() != nil:
				s.release(c, o, blocked[o.GetUID()])
			case namespace != nil && namespace.GetDeletionTimestamp() != nil:
				s.delete(c, o) // cannot fail without a body
			case len(o.GetOwnerReferences()) > 0:
				s.collectDependent(c, o, owners)
			}
		}
	}
	return s.version != before
}

// hasContent returns whether there is an object in a Namespace.
func (s *Server) hasContent(namespace string) bool {
	return slices.ContainsFunc(s.everything(), func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == namespace
	})
}

// everything returns all objects.
func (s *Server) everything() (all []*unstructured.Unstructured) {
	for _, objects := range s.objects {
		for _, o := range objects {
			all = append(all, o)
		}
	}
	return all
}

type byUID map[types.UID]*unstructured.Unstructured

// owners returns the objects that keep their dependents, and the UIDs of those that dependents block.
func (s *Server) owners() (keep byUID, blocked map[types.UID]bool) {
	keep, blocked = byUID{}, map[types.UID]bool{}
	for _, o := range s.everything() {
		if o.GetDeletionTimestamp() == nil || !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			keep[o.GetUID()] = o
		}
		for _, reference := range o.GetOwnerReferences() {
			blocked[reference.UID] = blocked[reference.UID] || ptr.Deref(reference.BlockOwnerDeletion, false)
		}
	}
	return keep, blocked
}

// collectDependent deletes an object without owners, or removes references to those that are gone.
func (s *Server) collectDependent(c call, o *unstructured.Unstructured, owners byUID) {
	references := slices.DeleteFunc(o.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		owner := owners[reference.UID]
		return owner == nil || owner.GetNamespace() != "" && owner.GetNamespace() != o.GetNamespace()
	})
	switch len(references) {
	case len(o.GetOwnerReferences()):
	case 0:
		s.delete(c, o) // cannot fail without a body
	default:
		next := o.DeepCopy()
		next.SetOwnerReferences(references)
		s.store(c, o, next)
	}
}

// release removes the finalizers of Kubernetes from a deleted object.
func (s *Server) release(c call, o *unstructured.Unstructured, blocked bool) {
	left := slices.DeleteFunc(o.GetFinalizers(), func(finalizer string) bool {
		return finalizer == claimFinalizer || finalizer == metav1.FinalizerDeleteDependents && !blocked
	})
	if len(left) == len(o.GetFinalizers()) {
		return
	}
	next := o.DeepCopy()
	next.SetFinalizers(left)
	if len(left) == 0 {
		s.store(c, next, nil)
		return
	}
	s.store(c, o, next)
}

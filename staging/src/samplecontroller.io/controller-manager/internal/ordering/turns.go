// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ordering

import "k8s.io/client-go/tools/cache"

// turns is a queue in which namespaces take turns. Keys of one namespace keep their order. The
// zero value is empty.
type turns struct {
	keys       map[string][]cache.ObjectName // by namespace
	namespaces []string                      // namespaces with keys, the next first
	len        int
}

func (t *turns) push(key cache.ObjectName) {
	if t.keys == nil {
		t.keys = map[string][]cache.ObjectName{}
	}
	keys := t.keys[key.Namespace]
	if len(keys) == 0 {
		t.namespaces = append(t.namespaces, key.Namespace)
	}
	t.keys[key.Namespace] = append(keys, key)
	t.len++
}

// pop returns the next key that still waits, and drops the others before it. At least one key
// must wait.
func (t *turns) pop(waits func(cache.ObjectName) bool) cache.ObjectName {
	for {
		namespace := shift(&t.namespaces)
		keys := t.keys[namespace]
		for len(keys) > 0 {
			key := shift(&keys)
			t.len--
			if !waits(key) {
				continue
			}
			if t.keys[namespace] = keys; len(keys) > 0 {
				t.namespaces = append(t.namespaces, namespace)
			} else {
				delete(t.keys, namespace)
			}
			return key
		}
		delete(t.keys, namespace)
	}
}

func shift[T any](s *[]T) T {
	first := (*s)[0]
	(*s)[0] = *new(T) // releases the memory, because the array remains
	*s = (*s)[1:]
	return first
}

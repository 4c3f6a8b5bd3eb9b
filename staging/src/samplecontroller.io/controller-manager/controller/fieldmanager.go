// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managerOf returns the field manager, other than ours, that set the field of an object last, "" if none is known.
// document returns the JSON of the object.
func managerOf(entries []metav1.ManagedFieldsEntry, ours string, document func() map[string]any,
	field string) (manager string) {
	last := metav1.Time{}
	for _, entry := range entries {
		if entry.Manager == ours || entry.FieldsV1 == nil || entry.Time != nil && entry.Time.Before(&last) {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || !manages(fields, document(), tokensOf(field)) {
			continue
		}
		if manager = entry.Manager; entry.Time != nil {
			last = *entry.Time
		}
	}
	return manager
}

// manages reports whether a tree of managed fields (FieldsV1) has what the tokens of a JSON pointer lead to in a
// value.
func manages(fields map[string]any, value any, tokens []string) bool {
	if len(tokens) == 0 || len(fields) == 0 { // a list or map that is managed as a whole has no children
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		child, ok := fields["f:"+tokens[0]].(map[string]any)
		return ok && manages(child, value[tokens[0]], tokens[1:])
	case []any:
		i, err := strconv.Atoi(tokens[0])
		if err != nil || i >= len(value) {
			return false
		}
		for name, child := range fields {
			if child, ok := child.(map[string]any); ok && identifies(name, value[i]) {
				return manages(child, value[i], tokens[1:])
			}
		}
	}
	return false
}

// identifies reports whether the name of managed fields is that of an element of a list. A key may have defaults
// that the element lacks.
func identifies(name string, element any) bool {
	kind, text, _ := strings.Cut(name, ":")
	switch kind {
	case "k":
		var key map[string]any
		object, ok := element.(map[string]any)
		if !ok || json.Unmarshal([]byte(text), &key) != nil {
			return false
		}
		return !slices.ContainsFunc(slices.Collect(maps.Keys(key)), func(k string) bool {
			return object[k] != nil && hashOfJSON(object[k]) != hashOfJSON(key[k])
		})
	case "v":
		var value any
		return json.Unmarshal([]byte(text), &value) == nil && hashOfJSON(value) == hashOfJSON(element)
	}
	return false
}

// tokensOf returns the tokens of a JSON pointer.
func tokensOf(pointer string) []string {
	tokens := strings.Split(pointer, "/")[1:]
	for i := range tokens {
		tokens[i] = pointerUnescaper.Replace(tokens[i])
	}
	return tokens
}

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// valueAt returns the value that a JSON pointer leads to in a document.
func valueAt(document any, pointer string) (value any, ok bool) {
	value = document
	for _, token := range tokensOf(pointer) {
		switch parent := value.(type) {
		case map[string]any:
			value, ok = parent[token]
		case []any:
			i, err := strconv.Atoi(token)
			if ok = err == nil && i < len(parent); ok {
				value = parent[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return value, true
}

// contains reports whether a value has what is wanted: objects may have more members, such as defaults.
func contains(wanted, value any) bool {
	if value == nil && isZero(wanted) {
		return true // such as an empty list
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		for name, member := range wanted {
			ok = ok && (member == nil || contains(member, object[name]))
		}
		return ok
	case []any:
		list, ok := value.([]any)
		ok = ok && len(list) == len(wanted)
		for i := range wanted {
			ok = ok && contains(wanted[i], list[i])
		}
		return ok
	}
	return reflect.DeepEqual(wanted, value)
}

// isHeld reports whether a field is held.
func isHeld(contests []contest, field string) bool {
	return slices.ContainsFunc(contests, func(c contest) bool { return c.isHeld && c.field == field })
}

// without returns the operations except those of held fields, and the tests of elements of lists in which nothing
// is changed any more.
func without(operations []operation, found []contest) []operation {
	kept := slices.DeleteFunc(slices.Clone(operations), func(o operation) bool { return isHeld(found, o.field) })
	if len(kept) == len(operations) {
		return operations
	}
	return slices.DeleteFunc(slices.Clone(kept), func(o operation) bool {
		element := o.Path[:strings.LastIndex(o.Path, "/")+1]
		return o.Op == "test" && !slices.ContainsFunc(kept, func(k operation) bool {
			return k.Op != "test" && strings.HasPrefix(k.Path+"/", element)
		})
	})
}

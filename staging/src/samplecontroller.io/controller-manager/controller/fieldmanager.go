// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
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
		for field, value := range key {
			if object[field] != nil && hashOfJSON(object[field]) != hashOfJSON(value) {
				return false
			}
		}
		return true
	case "v":
		var value any
		return json.Unmarshal([]byte(text), &value) == nil && hashOfJSON(value) == hashOfJSON(element)
	}
	return false
}

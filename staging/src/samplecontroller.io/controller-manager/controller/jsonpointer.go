// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"reflect"
	"strconv"
	"strings"
)

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

// contains reports whether a value includes the wanted one. Objects may have more members, such as defaults.
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

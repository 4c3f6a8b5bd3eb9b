// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package frugal

import (
	"bytes"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// What API servers begin a custom resource with: its fields are sorted.
var (
	objectBegin = []byte(`{"apiVersion":"`)
	objectKind  = []byte(`","kind":"`)
	quote       = []byte(`"`)
)

// kinds tells the kind of an object by how it begins.
type kinds struct{ json.SimpleMetaFactory }

// Interpret implements json.MetaFactory.
func (k kinds) Interpret(data []byte) (*schema.GroupVersionKind, error) {
	apiVersion, kind, ok := beginning(data)
	if !ok {
		return k.SimpleMetaFactory.Interpret(data)
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	gvk := version.WithKind(kind)
	return &gvk, nil
}

// beginning returns what the first two fields of an object say, and whether they are those.
func beginning(data []byte) (apiVersion, kind string, ok bool) {
	rest, ok := bytes.CutPrefix(data, objectBegin)
	if !ok {
		return "", "", false
	}
	first, rest, _ := bytes.Cut(rest, objectKind)
	second, _, ok := bytes.Cut(rest, quote)
	if !ok || !plain(first) || !plain(second) {
		return "", "", false
	}
	return string(first), string(second), true
}

// plain tells whether what stands between quotes in JSON is the string itself.
func plain(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}

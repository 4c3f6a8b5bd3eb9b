// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package frugal

import (
	"bytes"
	stdjson "encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What API servers write around the type of an event and its object; see
// [metav1.WatchEvent].
var (
	eventBegin  = []byte(`{"type":"`)
	eventObject = []byte(`","object":`)
	openBrace   = []byte("{")
	closeBrace  = []byte("}")
)

// events decodes events of a watch. The object of one is a part of the data: it has to be
// decoded before more is read, as [k8s.io/client-go/rest/watch.Decoder] does, and what is
// decoded keeps nothing of it.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok {
		if eventType, object, ok := split(data); ok {
			*event = metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}
			return event, &schema.GroupVersionKind{}, nil
		}
	}
	return e.Serializer.Decode(data, defaults, into)
}

// split returns the type of an event and its object, and whether that is all there is.
func split(data []byte) (eventType string, object []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, eventBegin)
	if !ok {
		return "", nil, false
	}
	name, rest, ok := bytes.Cut(rest, eventObject)
	if !ok || !plain(name) {
		return "", nil, false
	}
	object, ok = bytes.CutSuffix(bytes.TrimSuffix(rest, newline), closeBrace)
	// More fields might follow the object: then this is not one value.
	if !ok || !bytes.HasPrefix(object, openBrace) || !bytes.HasSuffix(object, closeBrace) || !stdjson.Valid(object) {
		return "", nil, false
	}
	return string(name), object, true
}

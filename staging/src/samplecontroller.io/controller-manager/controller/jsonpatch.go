// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxListEdits is the number of operations above which a list is set as a whole. The API server
// accepts 10,000 operations in a patch.
const maxListEdits = 1000

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	From  string `json:"from,omitempty"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`

	// field is the path of what the operation changes, with its values; "" for a test. If elements of a list are
	// added, removed or moved, it is the list, whose operations depend on each other.
	field         string
	before, after any
}

// differ collects the operations that make one JSON document another. Only what differs is in
// them, so they keep what the documents lack, such as fields that a Go type does not know. A null
// counts as absent.
type differ struct {
	// sparse means that the stored object may lack fields which encoding/json adds to the
	// documents: an object of zero values, such as an empty status. Then nothing can be added to
	// that object, and it is set as a whole.
	sparse bool
	ops    []operation
}

// members compares two objects. The first one exists in the stored object.
func (d *differ) members(path string, from, to map[string]any) {
	both := maps.Clone(from)
	maps.Copy(both, to)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		before, after := from[name], to[name]
		at := path + "/" + pointerEscaper.Replace(name)
		switch {
		case reflect.DeepEqual(before, after):
		case after == nil:
			d.ops = append(d.ops, operation{Op: "remove", Path: at, field: at, before: before})
		default:
			d.member(at, before, after)
		}
	}
}

// zeros adds the fields of the status that are zero in both objects to a patch that sets observedGeneration, as
// the first one of the object's own controller does. The stored object may lack them, and users would see
// nothing in place of 0.
func (d *differ) zeros(from, to map[string]any) {
	before, _ := from["status"].(map[string]any)
	after, _ := to["status"].(map[string]any)
	changes := func(o operation) bool { return o.Path == "/status/observedGeneration" }
	if !d.sparse || !slices.ContainsFunc(d.ops, changes) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch value := after[name]; value.(type) {
		case json.Number, string, bool:
			if isZero(value) && reflect.DeepEqual(before[name], value) {
				d.ops = append(d.ops, operation{Op: "add", Path: "/status/" + pointerEscaper.Replace(name), Value: value})
			}
		}
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// member compares two values of a member of an object. after is not null.
func (d *differ) member(at string, before, after any) {
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok && !(d.sparse && isZero(before)) {
			d.members(at, before, after)
			return
		}
	case []any:
		if before, ok := before.([]any); ok && d.list(at, before, after) {
			return
		}
	}
	// This also replaces.
	d.ops = append(d.ops, operation{Op: "add", Path: at, Value: after, field: at, before: before, after: after})
}

// isZero reports whether encoding/json may have made a value that is not in the stored object.
func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if !isZero(member) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	case json.Number:
		return value == "0"
	default:
		return value == nil || value == "" || value == false
	}
}

// list compares two lists element by element. It returns false if the list must be set as a
// whole, because its elements have no identity, or are not objects and so have no unknown
// fields.
func (d *differ) list(path string, from, to []any) bool {
	ids, wanted, keys := identify(from, to)
	if len(from) == 0 || ids == nil {
		return false
	}
	edits, before, isMoved := differ{sparse: d.sparse}, from, !slices.Equal(ids, wanted)
	from = slices.Clone(from)
	remaining := sets.New(wanted...)
	for i, id := range slices.Backward(ids) {
		if !remaining.Has(id) {
			at := path + "/" + strconv.Itoa(i)
			edits.test(at, keys, from[i])
			edits.ops = append(edits.ops, operation{Op: "remove", Path: at})
			from, ids = slices.Delete(from, i, i+1), slices.Delete(ids, i, i+1)
		}
	}
	for i, after := range to {
		at := path + "/" + strconv.Itoa(i)
		j := slices.Index(ids, wanted[i])
		if j < 0 {
			edits.ops = append(edits.ops, operation{Op: "add", Path: at, Value: after})
			from, ids = slices.Insert(from, i, after), slices.Insert(ids, i, wanted[i])
			continue
		}
		element := from[j]
		if j != i {
			edits.ops = append(edits.ops, operation{Op: "move", From: path + "/" + strconv.Itoa(j), Path: at})
			from, ids = slices.Delete(from, j, j+1), slices.Delete(ids, j, j+1)
			from, ids = slices.Insert(from, i, element), slices.Insert(ids, i, wanted[i])
		}
		inner := differ{sparse: d.sparse}
		inner.members(at, element.(map[string]any), after.(map[string]any))
		if j != i || len(inner.ops) > 0 {
			edits.test(at, keys, element)
			edits.ops = append(edits.ops, inner.ops...)
		}
	}
	if len(edits.ops) > maxListEdits {
		return false
	}
	if isMoved {
		for i := range edits.ops {
			edits.ops[i].field, edits.ops[i].before, edits.ops[i].after = path, before, to
		}
	}
	d.ops = append(d.ops, edits.ops...)
	return true
}

// test makes the patch fail if the element at a path is not the given one.
func (d *differ) test(at string, keys []string, element any) {
	for _, key := range keys {
		if value := element.(map[string]any)[key]; !isZero(value) {
			d.ops = append(d.ops, operation{Op: "test", Path: at + "/" + key, Value: value})
		}
	}
}

// identities are the fields that may identify an element of a list, those of particular lists of
// Kubernetes first. All but the first field of an identity may be absent. An identity applies only
// if it is unique in both lists.
var identities = [][]string{
	{"containerPort", "protocol"}, {"port", "protocol"}, {"topologyKey", "whenUnsatisfiable"},
	{"mountPath"}, {"devicePath"}, {"ip"}, {"uid"}, {"name"}, {"type"}, {"key"},
	nil, // the whole element
}

// identify returns the identities of the elements of two lists, and which fields they consist
// of. It returns nothing if an element is not an object or has no unique identity.
func identify(from, to []any) (ofFrom, ofTo, keys []string) {
	for _, keys := range identities {
		if ofFrom, ofTo := identitiesOf(from, keys), identitiesOf(to, keys); ofFrom != nil && ofTo != nil {
			return ofFrom, ofTo, keys
		}
	}
	return nil, nil, nil
}

// identitiesOf returns the values of the keys in each element, or nil if they are not unique.
func identitiesOf(list []any, keys []string) []string {
	ids := make([]string, 0, len(list))
	for _, element := range list {
		object, ok := element.(map[string]any)
		if !ok {
			return nil
		}
		if keys == nil {
			content, _ := json.Marshal(object) // it was decoded from JSON
			ids = append(ids, string(content))
			continue
		}
		var id strings.Builder
		for i, key := range keys {
			switch value := object[key].(type) {
			case string, json.Number:
				fmt.Fprintf(&id, "%v\x00", value)
			default:
				if i == 0 || value != nil {
					return nil
				}
			}
		}
		ids = append(ids, id.String())
	}
	if sets.New(ids...).Len() < len(ids) {
		return nil
	}
	return ids
}

// same reports whether two values are equal, where nil is as good as an empty list or map. Most are equal even
// to [reflect.DeepEqual], which makes a tenth of the allocations.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b) }

// differing returns shallow copies of two objects, without the fields in which they do not differ.
func differing[T Object](before, after T) (from, to T) {
	from, to = newOf[T](), newOf[T]()
	a, b := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range a.NumField() {
		if a.Type().Field(i).IsExported() && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			reflect.ValueOf(from).Elem().Field(i).Set(a.Field(i))
			reflect.ValueOf(to).Elem().Field(i).Set(b.Field(i))
		}
	}
	return from, to
}

// documentOf returns the JSON of an object, without its type and resourceVersion.
func documentOf(object any) (document map[string]any, err error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // a float64 cannot hold every int64
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	delete(document, "apiVersion")
	delete(document, "kind")
	if metadata, ok := document["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
	}
	return document, nil
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// selectable are the fields of a selector, besides name and namespace.
var selectable = map[string][]string{
	"events": {
		"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid", "reason", "type",
	},
	"namespaces": {"status.phase"},
	"pods":       {"spec.nodeName", "spec.serviceAccountName", "status.phase", "status.podIP"},
	"secrets":    {"type"},
}

// selector reports whether a list or watch selects an object, which may be nil.
type selector func(*unstructured.Unstructured) bool

func (c call) selection() (selector, error) {
	query := c.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	known := slices.Concat([]string{"metadata.name", "metadata.namespace"}, selectable[c.resource.Resource])
	for _, requirement := range byField.Requirements() {
		if !slices.Contains(known, requirement.Field) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf(`%q is not a known field selector: only "%s"`,
				requirement.Field, strings.Join(known, `", "`)))
		}
	}
	return func(o *unstructured.Unstructured) bool {
		if o == nil || c.Namespace != "" && o.GetNamespace() != c.Namespace {
			return false
		}
		values := fields.Set{}
		for _, name := range known {
			values[name], _, _ = unstructured.NestedString(o.Object, strings.Split(name, ".")...)
		}
		return byLabel.Matches(labels.Set(o.GetLabels())) && byField.Matches(values)
	}, nil
}

// selected returns the selected objects of a version, in order.
func (s *Server) selected(c call, version int64, selected selector) (found []*unstructured.Unstructured) {
	objects := maps.Clone(s.objects[c.resource])
	for _, change := range slices.Backward(s.log) {
		if change.version <= version {
			break
		}
		if change.resource != c.resource {
			continue
		}
		if change.old == nil {
			delete(objects, keyOf(change.new))
		} else {
			objects[keyOf(change.old)] = change.old
		}
	}
	for _, o := range objects {
		if selected(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return compare(keyOf(a), keyOf(b)) })
	return found
}

func keyOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// page is the content of a continue token.
type page struct {
	Version int64
	After   types.NamespacedName
}

// pageOf returns the page that a request continues.
func (s *Server) pageOf(c call) (p page, err error) {
	p.Version = s.version
	token := c.URL.Query().Get("continue")
	if token == "" {
		return p, nil
	}
	content, _ := base64.RawURLEncoding.DecodeString(token)
	if err := json.Unmarshal(content, &p); err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: continue key is not valid: %v", err))
	}
	if p.Version < s.oldest {
		return p, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent " +
			"list result. You must start a new list without the continue parameter.")
	}
	return p, nil
}

func (s *Server) list(c call) (any, error) {
	selected, err := c.selection()
	if err != nil {
		return nil, err
	}
	p, err := s.pageOf(c)
	if err != nil {
		return nil, err
	}
	objects := s.selected(c, p.Version, selected)
	if p.After.Name != "" {
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return compare(keyOf(o), p.After) <= 0
		})
	}
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(p.Version, 10)}
	if limit, _ := strconv.Atoi(c.URL.Query().Get("limit")); limit > 0 && len(objects) > limit {
		p.After = keyOf(objects[limit-1])
		token, err := json.Marshal(p)
		if err != nil {
			return nil, statusError(http.StatusInternalServerError, "%v", err)
		}
		metadata["continue"] = base64.RawURLEncoding.EncodeToString(token)
		if !c.URL.Query().Has("labelSelector") && !c.URL.Query().Has("fieldSelector") {
			metadata["remainingItemCount"] = len(objects) - limit
		}
		objects = objects[:limit]
	}
	items := []any{}
	for _, o := range objects {
		item := maps.Clone(c.view(o).Object)
		if c.kind.builtIn && !c.metadataOnly() {
			delete(item, "apiVersion")
			delete(item, "kind")
		}
		items = append(items, item)
	}
	group, name := c.responseKind().ToAPIVersionAndKind()
	return map[string]any{"apiVersion": group, "kind": name + "List", "metadata": metadata, "items": items}, nil
}

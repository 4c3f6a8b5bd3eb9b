// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// object is an API object as JSON; nil if there is none.
type object map[string]any

func (o object) metadata() map[string]any {
	metadata, _ := o["metadata"].(map[string]any)
	return metadata
}

// clean removes what the API server sets. A status and all else are written separately, so only one of
// both is kept. A dry run invents more fields of an object that it creates.
func (o object) clean(isStatus, created bool) {
	metadata := o.metadata()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "selfLink"} {
		delete(metadata, field)
	}
	if created {
		delete(metadata, "uid")
		delete(metadata, "creationTimestamp")
	}
	if !isStatus {
		delete(o, "status")
		return
	}
	maps.DeleteFunc(o, func(field string, _ any) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field)
	})
}

// mask replaces the values of Secrets, as kubectl diff does, and removes the annotation with a copy of them.
func mask(before, after object) {
	for _, o := range []object{before, after} {
		annotations, _ := o.metadata()["annotations"].(map[string]any)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	for _, field := range []string{"data", "stringData"} {
		from, _ := before[field].(map[string]any)
		to, _ := after[field].(map[string]any)
		for key := range sets.KeySet(from).Union(sets.KeySet(to)) {
			was, isOld := from[key]
			is, isNew := to[key]
			if isOld && isNew && was == is {
				from[key], to[key] = "***", "***"
				continue
			}
			if isOld {
				from[key] = "*** (before)"
			}
			if isNew {
				to[key] = "*** (after)"
			}
		}
	}
}

// yaml returns the object as YAML, empty if there is none.
func (o object) yaml() string {
	if o == nil {
		return ""
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		return fmt.Sprintf("%v\n", map[string]any(o))
	}
	return string(text)
}

// maxFields is how many changed fields are listed.
const maxFields = 20

// differences returns the paths of the first changed fields, sorted. It returns none for an object that is created or
// deleted.
func (o object) differences(after object) []string {
	if o == nil || after == nil {
		return nil
	}
	var paths []string
	compare("", map[string]any(o), map[string]any(after), &paths)
	if more := len(paths) - maxFields; more > 0 {
		paths = append(paths[:maxFields], fmt.Sprintf("and %d more", more))
	}
	return paths
}

// compare appends the paths of the fields in which two values differ.
func compare(at string, before, after any, paths *[]string) {
	if reflect.DeepEqual(before, after) {
		return
	}
	from, isMap := before.(map[string]any)
	to, areMaps := after.(map[string]any)
	list, isList := before.([]any)
	other, areLists := after.([]any)
	switch {
	case isMap && areMaps:
		for _, key := range sets.List(sets.KeySet(from).Union(sets.KeySet(to))) {
			compare(strings.TrimPrefix(at+"."+key, "."), from[key], to[key], paths)
		}
	case isList && areLists && len(list) == len(other):
		for i := range list {
			compare(fmt.Sprintf("%s[%d]", at, i), list[i], other[i], paths)
		}
	default:
		*paths = append(*paths, at)
	}
}

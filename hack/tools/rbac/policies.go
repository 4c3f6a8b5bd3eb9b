// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
)

//go:embed *.yaml.tmpl
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"list": func(words []string) string { return `"` + strings.Join(words, `", "`) + `"` },
}).ParseFS(files, "*"))

// writeVerbs are the verbs with which controllers write, and changeVerbs those that change an
// object.
var (
	writeVerbs  = append([]string{"create", "delete", "deletecollection"}, changeVerbs...)
	changeVerbs = []string{"patch", "update"}
)

// written is a resource that controllers write.
type written struct {
	Group, Version, Resource string
	// Changes are the verbs that change an object.
	Changes []string
}

// Level returns the audit level of a change.
func (w *written) Level() string {
	if strings.HasSuffix(w.Resource, "/status") {
		return "RequestResponse"
	}
	return "Request"
}

// writes returns the resources that controllers write, sorted.
func (n needs) writes() []*written {
	var all []*written
	for p := range n {
		// Nothing is written to finalizers: this right permits setting owner references.
		if !slices.Contains(writeVerbs, p.verb) || strings.HasSuffix(p.resource, "/finalizers") {
			continue
		}
		i := slices.IndexFunc(all, func(w *written) bool { return w.Group == p.group && w.Resource == p.resource })
		if i < 0 {
			i = len(all)
			all = append(all, &written{Group: p.group, Version: versionOf(p.group), Resource: p.resource})
		}
		if slices.Contains(changeVerbs, p.verb) {
			all[i].Changes = append(all[i].Changes, p.verb)
		}
	}
	for _, w := range all {
		slices.Sort(w.Changes)
	}
	slices.SortFunc(all, func(a, b *written) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return all
}

// versionOf returns the version of a group that our clients use. Admission matches equivalent
// versions, too.
func versionOf(group string) string {
	for _, scheme := range []*runtime.Scheme{samplescheme.Scheme, kubescheme.Scheme} {
		if versions := scheme.PrioritizedVersionsForGroup(group); len(versions) > 0 {
			return versions[0].Version
		}
	}
	return "*"
}

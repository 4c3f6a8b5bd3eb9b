// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// daemon is the name of the command that the image runs, and of its image in the manifests.
const daemon = "sample-controller-manager"

// build returns the objects of kustomizations as YAML, with the daemon's image set unless it is
// empty, and only of the kinds to keep. An object that several kustomizations have comes once. The
// objects are in the order of `kubectl kustomize`, so that they can be applied at once.
func build(directories []string, image string, keep func(kind string) bool) ([]byte, error) {
	var all bytes.Buffer
	seen := map[string]string{}
	for _, directory := range directories {
		objects, err := buildOne(directory, image)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", directory, err)
		}
		for _, object := range objects.Resources() {
			id := object.CurId().String()
			text, err := object.AsYAML()
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", id, err)
			}
			if former, ok := seen[id]; ok && former != string(text) {
				return nil, fmt.Errorf("%s in %s differs from the one in an earlier kustomization", id, directory)
			} else if ok || !keep(object.GetKind()) {
				continue
			}
			seen[id] = string(text)
			fmt.Fprintf(&all, "---\n%s", text)
		}
	}
	return all.Bytes(), nil
}

func buildOne(directory, image string) (resmap.ResMap, error) {
	kustomizer := krusty.MakeKustomizer(&krusty.Options{
		Reorder:           krusty.ReorderOptionLegacy,
		LoadRestrictions:  types.LoadRestrictionsRootOnly,
		PluginConfig:      types.DisabledPluginConfig(),
		AddManagedbyLabel: false,
	})
	objects, err := kustomizer.Run(filesys.MakeFsOnDisk(), directory)
	if err != nil || image == "" {
		return objects, err
	}
	tag := types.Image{Name: daemon}
	rest, digest, _ := strings.Cut(image, "@")
	tag.NewName, tag.Digest = rest, digest
	// The port of a registry also follows a colon.
	if colon := strings.LastIndex(rest, ":"); colon > strings.LastIndex(rest, "/") {
		tag.NewName, tag.NewTag = rest[:colon], rest[colon+1:]
	}
	return objects, objects.ApplyFilter(imagetag.LegacyFilter{ImageTag: tag})
}

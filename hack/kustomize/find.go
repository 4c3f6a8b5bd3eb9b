// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// basePath is the kustomization that components extend.
const basePath = "manifests/base"

// kustomization is one to be built in the root of the repository.
type kustomization struct {
	// name is the directory, or a description if there is content.
	name string
	// content is that of the kustomization.yaml, empty if it is in the directory.
	content []byte
}

// find returns all kustomizations to build: those in manifests, the base with each
// selection of components, and those that manifests/README.md shows.
func find(root string) ([]kustomization, error) {
	var all []kustomization
	var components []string
	err := filepath.WalkDir(filepath.Join(root, "manifests"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var k struct{ Kind string }
		if err := utilyaml.Unmarshal(content, &k); err != nil {
			return fmt.Errorf("decoding %s: %w", file, err)
		}
		if dir = filepath.ToSlash(dir); k.Kind == "Component" {
			components = append(components, dir)
		} else {
			all = append(all, kustomization{name: dir})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for kustomizations: %w", err)
	}
	all = append(all, selections(components)...)
	manual, err := os.ReadFile(filepath.Join(root, "manifests", "README.md"))
	if err != nil {
		return nil, err
	}
	for i, match := range block.FindAllSubmatch(manual, -1) {
		all = append(all, kustomization{fmt.Sprintf("kustomization %d in manifests/README.md", i+1), match[1]})
	}
	return all, nil
}

// block is a kustomization in Markdown.
var block = regexp.MustCompile("(?s)```yaml\n# kustomization.yaml\n(.*?)```")

// selections returns the base with each non-empty subset of the components.
func selections(components []string) []kustomization {
	var all []kustomization
	for subset := 1; subset < 1<<len(components); subset++ {
		name, content := basePath, "resources: ["+basePath+"]\ncomponents:\n"
		for i, component := range components {
			if subset&(1<<i) != 0 {
				name += " + " + path.Base(component)
				content += "- " + component + "\n"
			}
		}
		all = append(all, kustomization{name, []byte(content)})
	}
	return all
}

// build returns the YAML that kubectl builds.
func (k kustomization) build(ctx context.Context, kubectl, root string) (string, error) {
	tmp, err := os.MkdirTemp("", "kustomize-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(root, k.name)
	if k.content != nil {
		dir = tmp
		// Relative paths of the kustomization start in the root of the repository.
		if err := os.Symlink(filepath.Join(root, "manifests"), filepath.Join(tmp, "manifests")); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(tmp, "kustomization.yaml"), k.content, 0o600); err != nil {
			return "", err
		}
	}
	return cluster.Kubectl(ctx, kubectl, os.DevNull, tmp, "kustomize", dir)
}

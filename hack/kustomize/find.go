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
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// basePath is what components are for.
const basePath = "manifests/base"

// kustomization is one to be built, in the root of the repository.
type kustomization struct {
	// name says what it is, for people.
	name string
	// Kind tells components from what can be built alone.
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Components []string `json:"components"`
	// content is that of the file; empty: name is the directory.
	content []byte
}

// find returns what is to be built of the repository.
func find(root string) ([]kustomization, error) {
	var all, components []kustomization
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
		k, err := parse(filepath.ToSlash(dir), content)
		if err != nil {
			return err
		}
		k.content = nil
		if k.Kind == "Component" {
			components = append(components, k)
		} else {
			all = append(all, k)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for kustomizations: %w", err)
	}
	all = append(all, choices(components)...)
	shown, err := shown(filepath.Join(root, "manifests", "README.md"))
	return append(all, shown...), err
}

func parse(name string, content []byte) (kustomization, error) {
	k := kustomization{name: name, content: content}
	if err := utilyaml.Unmarshal(content, &k); err != nil {
		return k, fmt.Errorf("decoding the kustomization of %s: %w", name, err)
	}
	return k, nil
}

// choices returns the base with each choice of components but none.
func choices(components []kustomization) []kustomization {
	var all []kustomization
	for choice := 1; choice < 1<<len(components); choice++ {
		k := kustomization{name: basePath, Resources: []string{basePath}}
		for i, component := range components {
			if choice&(1<<i) != 0 {
				k.name += " + " + path.Base(component.name)
				k.Components = append(k.Components, component.name)
			}
		}
		k.content = []byte("resources:\n- " + basePath + "\ncomponents:\n- " + strings.Join(k.Components, "\n- ") + "\n")
		all = append(all, k)
	}
	return all
}

// block is a kustomization in a text for people.
var block = regexp.MustCompile("(?s)```yaml\n# kustomization.yaml\n(.*?)```")

// shown returns the kustomizations that a text shows.
func shown(file string) ([]kustomization, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []kustomization
	for i, match := range block.FindAllSubmatch(text, -1) {
		k, err := parse(fmt.Sprintf("the kustomization no. %d in %s", i+1, filepath.Base(file)), match[1])
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// build builds it.
func (k kustomization) build(ctx context.Context, kubectl, root string) (build, error) {
	out, err := k.output(ctx, kubectl, root)
	if err != nil {
		return build{}, err
	}
	b := build{whole: k.name == basePath || slices.Contains(k.Resources, basePath)}
	for _, component := range k.Components {
		b.components = append(b.components, path.Base(component))
	}
	b.objects, err = decode([]byte(out))
	return b, err
}

// output returns what kubectl builds of it.
func (k kustomization) output(ctx context.Context, kubectl, root string) (string, error) {
	tmp, err := os.MkdirTemp("", "kustomize-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if k.content == nil {
		return cluster.Kubectl(ctx, kubectl, os.DevNull, tmp, "kustomize", filepath.Join(root, k.name))
	}
	// To it, the manifests are where they are to who stands in the root.
	if err := os.Symlink(filepath.Join(root, "manifests"), filepath.Join(tmp, "manifests")); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, "kustomization.yaml"), k.content, 0o600); err != nil {
		return "", err
	}
	return cluster.Kubectl(ctx, kubectl, os.DevNull, tmp, "kustomize", tmp)
}

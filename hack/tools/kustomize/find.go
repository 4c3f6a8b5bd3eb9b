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

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// basePath is the kustomization that components extend.
const basePath = "manifests/base"

// kustomization is a kustomization to build in the root of the repository.
type kustomization struct {
	// name is the directory, or a description if there is content.
	name string
	// content is the kustomization.yaml, empty if it is in the directory.
	content []byte
	renaming
}

// renaming is what a kustomization does to all names.
type renaming struct{ namespace, prefix string }

// transformers is the name of a directory that kustomizations list under "transformers".
const transformers = "transformers"

// find returns all kustomizations to build: those in manifests, all of them together with each
// selection of components and under other names, and those that the Markdown files in
// manifests show.
func find(root string) (all []kustomization, err error) {
	var components []string
	repository := os.DirFS(root)
	err = fs.WalkDir(repository, "manifests", func(file string, _ fs.DirEntry, err error) error {
		dir, page := path.Dir(file), path.Ext(file) == ".md"
		if err != nil || !page && (path.Base(file) != "kustomization.yaml" || path.Base(dir) == transformers) {
			return err
		}
		content, err := fs.ReadFile(repository, file)
		if err != nil {
			return err
		}
		if page {
			for i, match := range block.FindAllSubmatch(content, -1) {
				all = append(all, kustomization{name: fmt.Sprintf("kustomization %d in %s", i+1, file), content: match[1]})
			}
			return nil
		}
		var k struct{ Kind string }
		if err := utilyaml.Unmarshal(content, &k); err != nil {
			return fmt.Errorf("decoding %s: %w", file, err)
		}
		if k.Kind == "Component" {
			components = append(components, dir)
		} else {
			all = append(all, kustomization{name: dir})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for kustomizations: %w", err)
	}
	return append(all, selections(root, components)...), nil
}

// block matches a kustomization in Markdown.
var block = regexp.MustCompile("(?s)```yaml\n# kustomization.yaml\n(.*?)```")

// renamings are the ways in which users rename what they install.
var renamings = []renaming{{}, {namespace: "ns", prefix: "a-"}, {namespace: "ns"}, {prefix: "a-"}}

// selections returns everything that can be installed, with each subset of the components, in
// another namespace and with a prefix. Without components, and with all of them, there are also
// builds with the original names and with only one of these changes. Such builds of each subset
// would take minutes.
func selections(root string, components []string) []kustomization {
	var all []kustomization
	for subset := range 1 << len(components) {
		names := []string{"everything"}
		var selected, last []string
		for i, component := range components {
			if subset&(1<<i) == 0 {
				continue
			}
			names = append(names, path.Base(component))
			selected = append(selected, component)
			if info, err := os.Stat(filepath.Join(root, component, transformers)); err == nil && info.IsDir() {
				last = append(last, path.Join(component, transformers))
			}
		}
		resources := []string{"manifests/cluster", basePath, "manifests/monitoring"}
		if !slices.Contains(names, "service-account-credentials") { // the fence refuses its tokens
			resources = append(resources, "manifests/fence")
		}
		content := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\ntransformers: [%s]\n",
			strings.Join(resources, ", "), strings.Join(selected, ", "), strings.Join(last, ", "))
		ways := renamings
		if subset > 0 && subset < 1<<len(components)-1 {
			ways = renamings[1:2]
		}
		for _, r := range ways {
			name := fmt.Sprintf("%s, namespace: %q, namePrefix: %q", strings.Join(names, " + "), r.namespace, r.prefix)
			fields := fmt.Sprintf("namespace: %q\nnamePrefix: %q\n", r.namespace, r.prefix)
			all = append(all, kustomization{name, []byte(content + fields), r})
		}
	}
	return all
}

// checkRenamed checks that an object has moved and has the prefix.
func (r renaming) checkRenamed(o object, complain complaint) {
	ns := o.GetNamespace()
	if o.GetKind() == "Namespace" {
		ns = o.GetName()
	} else if o.GetKind() != "CustomResourceDefinition" && !strings.HasPrefix(o.GetName(), r.prefix) {
		complain("has no prefix %s", r.prefix)
	}
	if r.namespace != "" && ns != "" && ns != r.namespace && !(o.GetKind() == "RoleBinding" && ns == servedNamespace) {
		complain("is in namespace %s, want %s", ns, r.namespace)
	}
}

// objects returns the objects that kubectl builds.
func (k kustomization) objects(ctx context.Context, kubectl, root string) (build, error) {
	text, err := k.build(ctx, kubectl, root)
	if err != nil {
		return nil, err
	}
	return decode(text)
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

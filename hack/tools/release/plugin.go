// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const plugin = "kubectl-scm"

// writePlugin writes an archive of the kubectl plugin for each platform, and the manifest from
// which krew installs them.
func (o options) writePlugin() error {
	directories, err := filepath.Glob(filepath.Join(o.builds, "*-*"))
	if err != nil {
		return err
	}
	if len(directories) == 0 {
		return fmt.Errorf("no binaries of %s in %s", plugin, o.builds)
	}
	var platforms []any
	for _, directory := range directories {
		system, architecture, _ := strings.Cut(filepath.Base(directory), "-")
		binary := plugin
		if system == "windows" {
			binary += ".exe"
		}
		file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", plugin, o.tag, system, architecture)
		err := o.writeCompressed(file, []member{
			{binary, filepath.Join(directory, binary), 0o755},
			{"LICENSE", "LICENSE", 0o644},
			{"licenses.txt", filepath.Join(o.builds, "licenses.txt"), 0o644},
		})
		if err != nil {
			return err
		}
		sum, err := sumOf(filepath.Join(o.output, file))
		if err != nil {
			return err
		}
		platforms = append(platforms, map[string]any{
			"bin":      binary,
			"sha256":   sum,
			"uri":      o.repository + "/releases/download/" + o.tag + "/" + file,
			"selector": map[string]any{"matchLabels": map[string]string{"os": system, "arch": architecture}},
		})
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": "scm"},
		"spec": map[string]any{
			"version":          o.version,
			"homepage":         o.repository,
			"shortDescription": "Inspect the sample-controller-manager",
			"description": "`kubectl scm status` finds the leader of the sample-controller-manager and prints what its\n" +
				"controllers are doing, or what one does about an object and why.\n",
			"platforms": platforms,
		},
	})
	if err != nil {
		return err
	}
	return o.writeFile("scm.yaml", "# Install with: kubectl krew install --manifest=scm.yaml\n"+o.placeholder()+string(manifest))
}

// placeholder says in a comment that the owner has not yet given the address of the repository.
func (o options) placeholder() string {
	if !strings.Contains(o.repository, ".invalid/") {
		return ""
	}
	return fmt.Sprintf("# %s IS A PLACEHOLDER: nothing can be downloaded from it.\n"+
		"# Install from the archives instead: --archive=FILE. See .github/ADDRESSES.md in the repository.\n", o.repository)
}

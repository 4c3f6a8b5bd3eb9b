// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime"
	"strings"
)

// toolchain returns the Go release that builds everything. hack/build-release.sh builds this
// program with the same one.
func toolchain() string { return runtime.Version() }

type (
	object = map[string]any
	digest = map[string]string
)

// writeProvenance writes an in-toto statement that says from what and how the files were built.
// It has no times and no name of a machine, so it is reproducible like the files. It is not
// signed.
func (o options) writeProvenance() error {
	sums, err := o.checksums()
	if err != nil {
		return err
	}
	var subjects []object
	for _, s := range sums {
		subjects = append(subjects, object{"name": s.file, "digest": digest{"sha256": s.sha256}})
	}
	script := o.repository + "/blob/" + o.revision + "/hack/build-release.sh"
	text, err := json.MarshalIndent(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          script,
				"externalParameters": object{"command": "make release", "VERSION": o.version, "IMAGE": o.image, "REPOSITORY": o.repository, "FIPS": o.fips},
				"resolvedDependencies": []object{
					{"uri": "git+" + o.repository, "digest": digest{"gitCommit": o.revision}},
					{"uri": "https://go.dev/dl/#" + toolchain(), "name": strings.TrimPrefix(toolchain(), "go")},
				},
			},
			"runDetails": object{"builder": object{"id": script}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return o.writeFile(provenanceFile, string(text)+"\n")
}

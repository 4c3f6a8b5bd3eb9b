// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"

	provenancev1 "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intotov1 "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// toolchain returns the Go release that builds everything. hack/release/build.sh builds this
// program with the same one.
func toolchain() string { return runtime.Version() }

// writeProvenance writes an in-toto statement that says from what and how the files were built.
// It has no times and no name of a machine, so it is reproducible like the files. It is not
// signed.
func (o options) writeProvenance() error {
	sums, err := o.checksums()
	if err != nil {
		return err
	}
	var subjects []*intotov1.ResourceDescriptor
	for _, s := range sums {
		subjects = append(subjects, &intotov1.ResourceDescriptor{Name: s.file, Digest: map[string]string{"sha256": s.sha256}})
	}
	provenance, err := o.provenance()
	if err != nil {
		return err
	}
	if err := provenance.Validate(); err != nil {
		return err
	}
	predicate := &structpb.Struct{}
	text, err := protojson.Marshal(provenance)
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal(text, predicate); err != nil {
		return err
	}
	statement := &intotov1.Statement{
		Type:          intotov1.StatementTypeUri,
		Subject:       subjects,
		PredicateType: "https://slsa.dev/provenance/v1",
		Predicate:     predicate,
	}
	if err := statement.Validate(); err != nil {
		return err
	}
	text, err = stable(statement)
	if err != nil {
		return err
	}
	return o.writeFile(provenanceFile, string(text))
}

func (o options) provenance() (*provenancev1.Provenance, error) {
	parameters, err := structpb.NewStruct(map[string]any{
		"command": "make release", "VERSION": o.version, "IMAGE": o.image, "REPOSITORY": o.repository, "FIPS": o.fips,
	})
	if err != nil {
		return nil, err
	}
	script := o.repository + "/blob/" + o.revision + "/hack/release/build.sh"
	return &provenancev1.Provenance{
		BuildDefinition: &provenancev1.BuildDefinition{
			BuildType:          script,
			ExternalParameters: parameters,
			ResolvedDependencies: []*intotov1.ResourceDescriptor{
				{Uri: "git+" + o.repository, Digest: map[string]string{"gitCommit": o.revision}},
				{Uri: "https://go.dev/dl/#" + toolchain(), Name: strings.TrimPrefix(toolchain(), "go")},
			},
		},
		RunDetails: &provenancev1.RunDetails{Builder: &provenancev1.Builder{Id: script}},
	}, nil
}

// stable encodes a message. protojson adds spaces that differ from one build of this program to
// another.
func stable(message proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

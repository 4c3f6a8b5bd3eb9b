// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi-schema prints the schemas of CustomResourceDefinitions as the OpenAPI
// document that applyconfiguration-gen reads. Without it, the generated fake clientset could
// not track field ownership after an apply.
//
// Usage: openapi-schema <import path of the Go types>=<file of the
// CustomResourceDefinition>...
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"

	"k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/yaml"
)

// definition is the part of a CustomResourceDefinition that matters here.
type definition struct {
	Spec struct {
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema any `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func main() {
	document, err := openAPI(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(document))
}

func openAPI(args []string) ([]byte, error) {
	schemas := map[string]any{}
	for _, arg := range args {
		goPackage, file, _ := strings.Cut(arg, "=")
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd definition
		if err := yaml.Unmarshal(content, &crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		schema, err := schemaOf(crd, path.Base(goPackage))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		schemas[util.ToRESTFriendlyName(goPackage+"."+crd.Spec.Names.Kind)] = schema
	}
	return json.Marshal(map[string]any{
		"swagger":     "2.0",
		"info":        map[string]any{"title": "CustomResourceDefinitions", "version": "unversioned"},
		"paths":       map[string]any{},
		"definitions": schemas,
	})
}

func schemaOf(crd definition, version string) (any, error) {
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return v.Schema.OpenAPIV3Schema, nil
		}
	}
	return nil, fmt.Errorf("no version %s", version)
}

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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/yaml"
)

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
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			if version.Name == path.Base(goPackage) {
				schemas[util.ToRESTFriendlyName(goPackage+"."+crd.Spec.Names.Kind)] = version.Schema.OpenAPIV3Schema
			}
		}
	}
	return json.Marshal(map[string]any{
		"swagger":     "2.0",
		"info":        map[string]any{"title": "CustomResourceDefinitions", "version": "unversioned"},
		"paths":       map[string]any{},
		"definitions": schemas,
	})
}

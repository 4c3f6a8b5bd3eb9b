// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The program sbom prints the bill of materials of a binary of the daemon, in CycloneDX's
// JSON: what its build info says that it is made of, with licences. It is the same for
// the same binary. It is to be run in the root of the repository.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"samplecontroller.io/sample-controller-manager/hack/tools/image/modules"
)

func main() {
	version := flag.String("version", "", "version of the daemon")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "Usage: sbom -version VERSION BINARY")
		os.Exit(2)
	}
	if err := run(*version, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(version, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	linked, err := modules.Linked(".", setting(info, "GOARCH"))
	if err != nil {
		return err
	}
	bom, err := newBOM(version, info, sha256.Sum256(content), linked)
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON)
	// Of the latest version few programs that read one know.
	return encoder.SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// newBOM returns the bill of materials. What the binary says of itself and what the source
// says must agree.
func newBOM(version string, info *debug.BuildInfo, sum [sha256.Size]byte, linked []modules.Module) (*cdx.BOM, error) {
	licenses := map[string][]string{}
	for _, m := range linked {
		licenses[m.Path+"@"+m.Version] = m.Licenses
	}
	std := component(modules.Std, strings.TrimPrefix(info.GoVersion, "go"), "", licenses[modules.Std+"@"])
	components, references := []cdx.Component{std}, []string{std.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil || strings.HasPrefix(m.Path, modules.Own) {
			continue // a part of the daemon
		}
		found, ok := licenses[m.Path+"@"+m.Version]
		if !ok {
			return nil, fmt.Errorf("the binary has %s %s, the source has not: build it anew", m.Path, m.Version)
		}
		c := component(m.Path, m.Version, m.Sum, found)
		components, references = append(components, c), append(references, c.BOMRef)
	}
	if len(components) != len(linked) {
		return nil, fmt.Errorf("the binary has %d modules, the source has %d: build it anew", len(components), len(linked))
	}
	daemon := component(info.Main.Path, version, "", []string{"Apache-2.0"})
	daemon.Type = cdx.ComponentTypeApplication
	daemon.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	daemon.Properties = &[]cdx.Property{
		{Name: "go:GOOS", Value: setting(info, "GOOS")},
		{Name: "go:GOARCH", Value: setting(info, "GOARCH")},
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &daemon}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: daemon.BOMRef, Dependencies: &references}}
	return bom, nil
}

// component returns a module as a component. sum is that of go.sum, if there is one.
func component(path, version, sum string, licenses []string) cdx.Component {
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B") + "?type=module"
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: path, Version: version, PackageURL: url}
	choices := cdx.Licenses{}
	for _, id := range licenses {
		choices = append(choices, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	c.Licenses = &choices
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}

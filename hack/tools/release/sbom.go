// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// printBOM prints an SBOM from the build info of a binary, with licenses, as CycloneDX JSON.
func (o options) printBOM() error {
	if len(o.args) != 1 {
		return fmt.Errorf("invalid arguments %q: want a binary", o.args)
	}
	binary := o.args[0]
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	linked, err := linkedModules(daemon, setting(info, "GOOS")+"/"+setting(info, "GOARCH"))
	if err != nil {
		return err
	}
	bom, err := newBOM(o.version, info, sha256.Sum256(content), linked)
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON)
	// Few programs read the latest version of the format yet.
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

// newBOM returns the SBOM. The modules in the binary must be the same as in the source.
func newBOM(version string, info *debug.BuildInfo, sum [sha256.Size]byte, linked []module) (*cdx.BOM, error) {
	licenses := map[string][]string{}
	for _, m := range linked {
		licenses[m.path+"@"+m.version] = m.licenses
	}
	library := component(std, strings.TrimPrefix(info.GoVersion, "go"), "", licenses[std+"@"])
	components, references := []cdx.Component{library}, []string{library.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil || strings.HasPrefix(m.Path, own) {
			continue // part of the daemon itself
		}
		found, ok := licenses[m.Path+"@"+m.Version]
		if !ok {
			return nil, fmt.Errorf("the binary has %s %s, but the source does not: rebuild it", m.Path, m.Version)
		}
		c := component(m.Path, m.Version, m.Sum, found)
		components, references = append(components, c), append(references, c.BOMRef)
	}
	if len(components) != len(linked) {
		return nil, fmt.Errorf("the binary has %d modules, but the source has %d: rebuild it", len(components), len(linked))
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

// component returns a module as a component. sum is from go.sum, if there is one.
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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// docLinks reports links of comments to what does not exist. See https://go.dev/doc/comment#doclinks. Links to
// unexported names, which only readers of the code follow, are checked, too.
var docLinks = &analysis.Analyzer{
	Name: "doclinks",
	Doc:  "checks that the links of comments resolve",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			for _, group := range file.Comments {
				for _, link := range docLink.FindAllStringSubmatch(group.Text(), -1) {
					if !resolves(pass, strings.Split(link[1], ".")) {
						pass.Reportf(group.Pos(), "the link [%s] of the comment leads nowhere", link[1])
					}
				}
			}
		}
		return nil, nil
	},
}

// docLink matches a name in brackets, which may have a type or a package before it, but no text with a URL, and no
// index.
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,2})\](?:$|[\s.,;)])`)

// resolves reports whether the names are a package of the module, an object of the package or of an imported one, or
// a member of such an object.
func resolves(pass *analysis.Pass, names []string) bool {
	scope := pass.Pkg.Scope()
	if scope.Lookup(names[0]) == nil {
		imported := importedAs(pass, names[0])
		if imported == nil {
			return false
		}
		if names = names[1:]; len(names) == 0 {
			return true
		}
		scope = imported.Scope()
	}
	object := scope.Lookup(names[0])
	if object == nil || len(names) > 2 {
		return false
	}
	if len(names) == 1 {
		return true
	}
	member, _, _ := types.LookupFieldOrMethod(object.Type(), true, pass.Pkg, names[1])
	return member != nil
}

// importedAs returns the package that a file of the package imports with that name.
func importedAs(pass *analysis.Pass, name string) *types.Package {
	for _, file := range pass.Files {
		for _, spec := range file.Imports {
			if object := pass.TypesInfo.PkgNameOf(spec); object != nil && object.Name() == name {
				return object.Imported()
			}
		}
	}
	return nil
}

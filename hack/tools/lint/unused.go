// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/token"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/unused"
)

// unusedAnalyzer reports what unused.Analyzer only returns. staticcheck merges packages before
// it reports, which is not needed: no other package can use an unexported object. The go
// command checks a package together with its tests.
var unusedAnalyzer = &analysis.Analyzer{
	Name:     "U1000",
	Doc:      unused.Analyzer.Analyzer.Doc,
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		files := map[string]*token.File{}
		for _, file := range pass.Files {
			f := pass.Fset.File(file.FileStart)
			files[f.Name()] = f
		}
		for _, object := range pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result).Unused {
			if f := files[object.Position.Filename]; f != nil {
				pass.Report(analysis.Diagnostic{
					Pos:     f.Pos(object.Position.Offset),
					Message: fmt.Sprintf("%s %s is unused", object.Kind, object.Name),
				})
			}
		}
		return nil, nil
	},
}

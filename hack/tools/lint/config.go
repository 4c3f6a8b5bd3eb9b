// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/modernize"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/conditions"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/optionalfields"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	kubeapilinter "sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration" // what the registry knows
	logcheck "sigs.k8s.io/logtools/logcheck/pkg"
)

// disabled are the checks that are off, and why.
var disabled = map[string]string{
	// Of modernize. Kubernetes has it off, too.
	"newexpr": "ptr.To says what it does, and is used everywhere",

	// Of staticcheck. Kubernetes has the first two off, too.
	"ST1005": "errors may start with the name of a kind or a field, such as ReplicaSets",
	"ST1008": "some functions return an error and more about it",
	"SA5009": "printf of go vet reports the same",
}

// logcheckConfig is as hack/logcheck.conf in Kubernetes. In what ships, a log line must
// come from the logger of a context, which says which controller it is from.
const logcheckConfig = `
contextual samplecontroller.io/.*
-contextual .*_test.go
-contextual samplecontroller.io/sample-controller-manager/hack/.*
`

// apiLinters and apiConfig configure kube-api-linter, which only looks at the API. What it
// has on by default is more than Kubernetes' hack/kube-api-linter has; but for
// conflictingmarkers, whose rules there are those of optionalorrequired and
// defaultorrequired. The ones below are for custom resources.
var (
	apiLinters = kubeapilinter.Linters{
		Enable: []string{"maxlength", "statusoptional"},
	}
	apiConfig = kubeapilinter.LintersConfig{
		"conditions": conditions.ConditionsConfig{
			// Custom resources have neither protobuf nor strategic merge patches.
			UseProtobuf:      conditions.ConditionsUseProtobufForbid,
			UsePatchStrategy: conditions.ConditionsUsePatchStrategyForbid,
			// As in Kubernetes.
			IsFirstField: conditions.ConditionsFirstFieldIgnore,
		},
		"optionalfields": optionalfields.OptionalFieldsConfig{
			Pointers: optionalfields.OptionalFieldsPointers{Preference: optionalfields.OptionalFieldsPointerPreferenceWhenRequired},
			// Counts in a status are written even if they are 0.
			OmitEmpty: optionalfields.OptionalFieldsOmitEmpty{Policy: optionalfields.OptionalFieldsOmitEmptyPolicyIgnore},
		},
	}
)

// analyzers returns all checks that are on.
func analyzers() ([]*analysis.Analyzer, error) {
	logs, config := logcheck.Analyser()
	if err := config.ParseConfig(logcheckConfig); err != nil {
		return nil, fmt.Errorf("configuring logcheck: %w", err)
	}
	apiAnalyzers, err := registry.DefaultRegistry().InitializeLinters(apiLinters, apiConfig)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-api-linter: %w", err)
	}
	for _, a := range apiAnalyzers {
		limit(a, api)
	}

	all := slices.Concat(vet.Suite, modernize.Suite, apiAnalyzers)
	for _, check := range slices.Concat(staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers) {
		all = append(all, check.Analyzer)
	}
	all = append(all, unusedAnalyzer, ineffassign.Analyzer, logs, imports())
	all = slices.DeleteFunc(all, func(a *analysis.Analyzer) bool {
		_, off := disabled[a.Name]
		return off
	})
	for _, a := range all {
		sign(a)
	}
	return all, nil
}

// limit makes an analyzer look only at packages below a path.
func limit(a *analysis.Analyzer, path string) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		if !strings.HasPrefix(pass.Pkg.Path(), path+"/") {
			return nil, nil
		}
		return run(pass)
	}
}

// sign makes an analyzer put its name behind what it reports, and report nothing in
// generated files, which only their generators can change.
func sign(a *analysis.Analyzer) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		signed := *pass
		signed.Report = func(d analysis.Diagnostic) {
			for _, file := range pass.Files {
				if file.FileStart <= d.Pos && d.Pos <= file.FileEnd && ast.IsGenerated(file) {
					return
				}
			}
			d.Message += " (" + a.Name + ")"
			pass.Report(d)
		}
		return run(&signed)
	}
}

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
	"sigs.k8s.io/kube-api-linter/pkg/analysis/defaults"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/optionalfields"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	kubeapilinter "sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration" // fills the registry
	logcheck "sigs.k8s.io/logtools/logcheck/pkg"
)

// disabled are the disabled checks, with reasons.
var disabled = map[string]string{
	// From modernize. Also disabled in Kubernetes.
	"newexpr": "ptr.To is clearer, and used everywhere",

	// From staticcheck. The first two are also disabled in Kubernetes.
	"ST1005": "errors may start with the name of a kind or a field, such as ReplicaSets",
	"ST1008": "some functions return an error with details after it",
	"SA5009": "go vet's printf check reports the same",
}

// logcheckConfig follows hack/logcheck.conf in Kubernetes. Product code must log through the
// logger of a context, which names the controller.
const logcheckConfig = `
contextual samplecontroller.io/.*
-contextual .*_test.go
-contextual samplecontroller.io/sample-controller-manager/hack/.*
`

// apiLinters and apiConfig configure kube-api-linter, which checks only the API. Its defaults
// include more than Kubernetes' hack/kube-api-linter, except conflictingmarkers, whose rules
// there are those of optionalorrequired and defaultorrequired. The options below are for
// custom resources.
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
		"defaults": defaults.DefaultsConfig{
			// The daemon writes observedGeneration always.
			OmitEmpty: defaults.DefaultsOmitEmpty{Policy: defaults.OmitEmptyPolicyIgnore},
		},
		"optionalfields": optionalfields.OptionalFieldsConfig{
			Pointers: optionalfields.OptionalFieldsPointers{
				Preference: optionalfields.OptionalFieldsPointerPreferenceWhenRequired,
			},
			// Counts in a status are written even if they are 0.
			OmitEmpty: optionalfields.OptionalFieldsOmitEmpty{Policy: optionalfields.OptionalFieldsOmitEmptyPolicyIgnore},
		},
	}
)

// analyzers returns all enabled checks.
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
	all = append(all, unusedAnalyzer, ineffassign.Analyzer, logs, imports(), docLinks)
	all = slices.DeleteFunc(all, func(a *analysis.Analyzer) bool {
		_, off := disabled[a.Name]
		return off
	})
	for _, a := range all {
		sign(a)
	}
	return all, nil
}

// limit makes an analyzer check only packages below a path.
func limit(a *analysis.Analyzer, path string) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		if !strings.HasPrefix(pass.Pkg.Path(), path+"/") {
			return nil, nil
		}
		return run(pass)
	}
}

// sign makes an analyzer append its name to its reports, and skip generated files, which only
// their generators can change.
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

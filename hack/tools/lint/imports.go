// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/OpenPeeDeeP/depguard/v2"
	"golang.org/x/tools/go/analysis"
)

const (
	api     = "samplecontroller.io/api"
	clients = "samplecontroller.io/client-go"
	library = "samplecontroller.io/controller-manager"
	root    = "samplecontroller.io/sample-controller-manager"
	app     = root + "/cmd/sample-controller-manager/app"

	inAPI     = "**/staging/src/" + api + "/**"
	inClients = "**/staging/src/" + clients + "/**"
	inLibrary = "**/staging/src/" + library + "/**"
	inApp     = "**/cmd/sample-controller-manager/app/"
)

// importRules configure which packages may import which, as lists of depguard. All lists that
// match a file apply to it.
//
// In lists made by ours, a package may import itself, packages below it, and from our other
// packages only the named ones. Two controllers, or two packages of the library, therefore
// cannot import each other unless a list allows it.
var importRules = depguard.LinterSettings{
	// Third parties import the API, the clients and the library. The API needs none of our
	// other code, and the library does not know our API.
	"api":     ours("The API must not need other code of ours.", in(inAPI), api),
	"clients": ours("The clients are generated from the API alone.", in(inClients), api, clients),

	// In the library, packages import downward: managertest, manager, then options, supervisor
	// and debug, then controller, then the others. The others do not import each other, except
	// that writes records in reconcile what a sync writes, that plan asks writes what a request
	// writes, and that informers makes a placeholder of tolerant of an object that a program cannot
	// transform.
	"library": ours(downward, in(inLibrary,
		"!**/controller-manager/controller/**", "!**/controller-manager/debug/**", "!**/controller-manager/examples/**",
		"!**/controller-manager/informers/**", "!**/controller-manager/internal/options/**",
		"!**/controller-manager/internal/plan/**", "!**/controller-manager/internal/supervisor/**", "!**/controller-manager/internal/writes/**",
		"!**/controller-manager/manager/**", "!**/controller-manager/managertest/**"),
		leaves...),
	"library/informers":  ours(downward, in("**/controller-manager/informers/**"), append(leaves, library+"/tolerant")...),
	"library/writes":     ours(downward, in("**/controller-manager/internal/writes/**"), append(leaves, library+"/reconcile")...),
	"library/plan":       ours(downward, in("**/controller-manager/internal/plan/**"), append(leaves, library+"/internal/writes")...),
	"library/controller": ours(downward, in("**/controller-manager/controller/**"), belowController...),
	"library/supervisor": ours(downward, in("**/controller-manager/internal/supervisor/**"),
		append(leaves, library+"/controller", library+"/reconcile")...),
	"library/debug": ours(downward, in("**/controller-manager/debug/**"), library+"/controller", library+"/reconcile"),
	"library/options": ours(downward, in("**/controller-manager/internal/options/**"),
		append(belowController, library+"/controller", library+"/internal/server")...),
	"library/manager": ours(downward, in("**/controller-manager/manager/**"), append(belowController,
		library+"/controller", library+"/debug", library+"/internal")...),
	"library/managertest": ours(downward, in("**/controller-manager/managertest/**"), append(belowController,
		library+"/controller", library+"/internal", library+"/manager")...),
	"library/examples": ours("Examples use only what third parties can use.", in("**/controller-manager/examples/**"), library),

	// A controller does not know other controllers, nor how it is started. The aggregator knows the kinds that
	// it summarizes.
	"controllers": ours("Controllers share code through pkg/workload and pkg/pods.",
		in("**/pkg/controller/**", "!$test", "!**/pkg/controller/statusaggregator/**"), controllers...),
	"controllers/tests": ours("A test of a controller runs it as a program.",
		in("**/pkg/controller/*/*_test.go", "!**/pkg/controller/statusaggregator/**"),
		append([]string{clients, library + "/manager", library + "/managertest"}, controllers...)...),
	"aggregator": ours("The aggregator knows the kinds that it summarizes.", in("**/pkg/controller/statusaggregator/**", "!$test"),
		summarized...),
	"aggregator/tests": ours("A test of a controller runs it as a program.", in("**/pkg/controller/statusaggregator/*_test.go"),
		append([]string{clients, library + "/manager", library + "/managertest"}, summarized...)...),
	"workload": ours("Package workload must work for every kind.", in("**/pkg/workload/**", "!$test"), workload...),
	"workload/tests": ours("A test of package workload runs the controllers as a program.", in("**/pkg/workload/*_test.go"),
		append([]string{clients, library + "/manager", library + "/managertest", library + "/reconcile", root + "/pkg/controller"}, workload...)...),
	"pods": ours("Package pods only follows owner references.", in("**/pkg/pods/**", "!$test"), library+"/controller"),
	"pods/tests": ours("A test of package pods runs a program.", in("**/pkg/pods/*_test.go"),
		api, clients, library+"/controller", library+"/informers", library+"/manager", library+"/managertest"),

	// The command. Its package app has the controller map.
	"app":  ours("The program needs no cluster.", in(inApp+"**"), api, clients, library, root+"/pkg", app),
	"main": ours("The command only starts the program of package app.", in("**/cmd/sample-controller-manager/*.go"), app, library+"/manager"),
	"plugin": ours("The kubectl plugin only prints what a replica reports.", in("**/cmd/kubectl-scm/**"), library+"/debug", library+"/reconcile",
		root+"/cmd/kubectl-scm"),

	"integration": ours("Tests of the daemon with an API server need no other tools.", in("**/hack/test/integration/**"),
		api, clients, library, app, root+"/hack/test/cluster", root+"/hack/test/framework"),

	// Code that judges replicas by the audit log must not know how they work.
	"leaders": ours("Code that judges replicas must not know how they work.", in("**/hack/test/leaders/**")),

	// Product code uses only client-go.
	"product": {
		Files: in("**/cmd/**", "**/pkg/**", "**/staging/**", "!**/hack/**"),
		Deny: map[string]string{
			"sigs.k8s.io/controller-runtime": "Product code uses only client-go.",
			"k8s.io/kubernetes":              "It is not made to be imported.",
		},
	},

	// The rest is as in hack/golangci.yaml of Kubernetes.
	"all": {
		Deny: map[string]string{"k8s.io/utils/pointer": "Use k8s.io/utils/ptr."},
	},
	"not tests": {
		Files: in("$all", "!$test", "!**/hack/test/framework/**"),
		Deny: map[string]string{
			"github.com/google/go-cmp/cmp": "It panics on unexpected input, so only tests may use it.",
		},
	},
	"templates": {
		Files: in("$all", "!$test", "!**/hack/test/framework/**", "!**/cmd/kubectl-scm/dashboard/**"),
		Deny: map[string]string{
			"html/template": "It looks up methods by name, so that the linker keeps all methods of all types.",
		},
	},
}

// downward is the reason for the order of imports in the library.
const downward = "Packages of the library import only those below them."

// leaves are what every package of the library may import.
var leaves = func() []string {
	var all []string
	for _, name := range []string{"connection", "fakeapi", "live", "logs", "logwriter", "longwrite", "misuse", "ordering", "preflight", "requests",
		"testkit", "truncate", "version"} {
		all = append(all, library+"/internal/"+name)
	}
	return slices.Clip(all)
}()

var belowController = slices.Clip(append(leaves, library+"/informers", library+"/internal/leadership", library+"/internal/plan",
	library+"/internal/writes", library+"/reconcile", library+"/tolerant"))

var workload = []string{api, library + "/controller", library + "/tolerant", root + "/pkg/pods"}

// The front door of the library is the only way to read and write.
var controllers = append([]string{root + "/pkg/workload"}, workload...)

var summarized = append([]string{root + "/pkg/controller/foo", root + "/pkg/controller/icecream"}, controllers...)

func in(files ...string) []string { return files }

// ours makes a list of our packages that files may import.
func ours(why string, files []string, packages ...string) *depguard.List {
	return &depguard.List{ListMode: "lax", Files: files, Allow: packages, Deny: map[string]string{"samplecontroller.io/": why}}
}

// imports returns depguard with the lists above.
func imports() *analysis.Analyzer {
	guard := *depguard.NewUncompiledAnalyzer(&depguard.LinterSettings{}).Analyzer
	guard.Run = func(pass *analysis.Pass) (any, error) {
		self := strings.TrimSuffix(pass.Pkg.Path(), "_test")
		settings := depguard.LinterSettings{}
		for name, list := range importRules {
			l := *list
			if l.ListMode == "lax" {
				l.Allow = append([]string{self}, l.Allow...)
			}
			settings[name] = &l
		}
		return depguard.NewUncompiledAnalyzer(&settings).Analyzer.Run(pass)
	}
	return &guard
}

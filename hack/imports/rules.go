// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

const (
	api     = "samplecontroller.io/api"
	clients = "samplecontroller.io/client-go"
	library = "samplecontroller.io/controller-manager"
	root    = "samplecontroller.io/sample-controller-manager"
	app     = root + "/cmd/sample-controller-manager/app"
)

// rules say who may import whom among our packages. A package belongs to the
// first rule whose of matches it, and may import what belongs to the same rule
// in the same place, and what may matches; its tests also what inTests matches.
//
// A pattern matches the package that it names and all below it. A * stands for
// one element of the path: pkg/controller/foo and pkg/controller/icecream belong
// to the same rule in different places, so neither may import the other.
var rules = []rule{
	// What a stranger may import. The library knows nothing of our API. Its
	// package manager puts the others together; they know nothing of each other but
	// small tools, so that each can be used alone.
	{of: api},
	{of: clients, may: []string{api}},
	{of: library + "/examples/*", may: []string{library}},
	{of: library + "/manager", may: []string{
		library + "/controller", library + "/debug", library + "/informers", library + "/internal",
		library + "/leadership", library + "/reconcile", library + "/server", library + "/supervisor",
	}},
	{of: library + "/supervisor", may: []string{library + "/controller", library + "/leadership", library + "/reconcile"}},
	{of: library + "/debug", may: []string{library + "/controller"}},
	{of: library + "/*", may: []string{library + "/internal"}},
	{of: library},

	// The controllers. None knows another, nor how it is started.
	{of: root + "/pkg/controller/*", may: []string{
		api, clients,
		library + "/controller", library + "/lenient", library + "/reconcile", library + "/writes",
		root + "/pkg/workload", root + "/pkg/ownership", root + "/pkg/podrecord",
	}},
	{of: root + "/pkg/workload",
		may:     []string{api, library + "/controller", library + "/lenient", library + "/reconcile", library + "/writes", root + "/pkg/ownership"},
		inTests: []string{clients, root + "/pkg/controller", root + "/pkg/podrecord"}}, // what it does, it does for each kind
	{of: root + "/pkg/ownership", may: []string{root + "/pkg/podrecord"}},
	{of: root + "/pkg/podrecord"},

	// The command. Only its package app wires all together.
	{of: app + "/testing", may: []string{api, clients, library, root + "/pkg", app}},
	{of: app, may: []string{api, clients, library, root + "/pkg"}, inTests: []string{app + "/testing", root + "/hack/cluster"}},
	{of: root + "/cmd/*", may: []string{app}},

	// Tools, and tests of the whole. What judges replicas by the audit log knows nothing
	// of them.
	{of: root + "/hack/leaders"},
	{of: root + "/hack", may: []string{api, clients, library, root}},
}

// bans say what must not be linked into our programs, by whatever way it gets there.
var bans = []ban{
	{of: root + "/cmd", what: "sigs.k8s.io/controller-runtime", why: "the product stands on client-go alone"},
	{of: root + "/cmd", what: "k8s.io/kubernetes", why: "it is not meant to be imported"},
	{of: library, what: "sigs.k8s.io/controller-runtime", why: "the library stands on client-go alone"},
}

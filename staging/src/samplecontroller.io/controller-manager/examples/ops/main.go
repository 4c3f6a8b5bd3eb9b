// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The ops-manager keeps defaults in namespaces, schedules backups, and deletes old Jobs.
package main

import (
	"net/http"
	"os"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/controller-manager/manager"
)

func main() { os.Exit(manager.Main(program(http.DefaultTransport))) }

func program(transport http.RoundTripper) manager.Program {
	return manager.Program{
		Name: "ops-manager", Port: 10264, Scheme: api.AddToScheme,
		Description: "Keeps defaults in namespaces, schedules backups, and deletes old Jobs.",
		Controllers: []controller.Descriptor{namespaceDefaults(), backups(transport), jobCollector()},
	}
}

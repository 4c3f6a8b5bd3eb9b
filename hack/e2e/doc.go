// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the real binary, several replicas of it, on a whole control
// plane with Nodes played by kwok, under the RBAC of the manifests and never as
// cluster admin. What the daemon did is read from outside: from the API, from the
// audit log and from exit codes.
//
//	main_test.go       the cluster that the tests share
//	daemon_test.go     a replica: started, asked, signalled, waited for
//	kinds_test.go      a Foo or an Icecream: what holds for one is tested over both
//	running_test.go    what a user sees of an object
//	sidebyside_test.go a Foo and an Icecream of one name
//	icecream_test.go   what is an Icecream's alone
//	placement_test.go  the line for each Pod that is placed, through kills
//	churn_test.go      statuses and placements while much happens at once
//	lifecycle_test.go  signals, leadership, exit codes
//	signal_test.go     SIGTERM at any moment of a process's life
//	shutdown_test.go   how controllers are started and waited for
//	liveness_test.go   what fails a liveness probe, and what does not
//	fleet_test.go      several replicas, each with a network of its own that can fail
//	sharpness_test.go  what is found in client-go's own leaders, so that nothing found counts
//	command_test.go    the command line, without a cluster
//	manifests_test.go  what the manifests install
//	install_test.go    what the optional components of the manifests promise
//	privileges_test.go over all tests: no right is missing, and none is for nothing
//	monitoring_test.go what a real Prometheus makes of manifests/monitoring
//	prometheus_test.go such a Prometheus
//	badobjects_test.go an object that cannot be decoded, or that nobody can mean
//	isolation_test.go  one controller does what it must not: what that does to the others
//	faulty_test.go     a replica that hosts such a controller
//	fence_test.go      the optional fence: what it refuses, and its hazards
//	takeover_test.go   from Kubernetes' sample-controller to us, and back
//	ownership_test.go  what others own survives our writes
//	upgrade_test.go    from one build to the next, and back
//	faults_test.go     the table of faults: what each does to us and to a peer
//	fault_*_test.go    what fails: an API, a permission, a token, a certificate, callers
//	loner_test.go      a replica whose credentials a test may spoil beside other tests
package e2e

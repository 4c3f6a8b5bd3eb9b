// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manual tests the README and the operator's manual in manifests/docs. They have each
// word that the code may put into a status or a report, and each reason under the condition
// that the code gives it. Each page is short, each link leads somewhere, and each flag and
// test that is named exists.
//
// flags.md and metrics.md are generated. The endpoints are compared with those of a running
// daemon in hack/test/integration.
package manual

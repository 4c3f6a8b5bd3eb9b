// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manual tests that the operator's manual, manifests/README.md, tells of all that
// an operator meets: each word that the code may put into a status or a report.
//
// What can be generated is: flags.md, metrics.md. The endpoints are compared with those of
// a running daemon in package app.
package manual

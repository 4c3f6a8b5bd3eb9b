// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manual tests that the operator's manual, manifests/README.md, and the README have
// each word that the code may put into a status or a report, and each reason under the
// condition that the code gives it.
//
// What can be generated is: flags.md, metrics.md. The endpoints are compared with those of
// a running daemon in package app.
package manual

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults tests what the daemon depends on fails and comes back: APIs, rights,
// tokens, certificates, connections.
//
// README.md says what each file shows.
package faults

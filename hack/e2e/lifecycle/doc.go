// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle tests the start and the end of a process: command line, signals and
// shutdown.
//
// README.md says what each file shows.
package lifecycle

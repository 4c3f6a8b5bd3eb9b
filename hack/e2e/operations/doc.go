// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operations tests what an operator installs and uses: manifests, components,
// monitoring, `status`, the move from sample-controller.
//
// README.md says what each file shows.
package operations

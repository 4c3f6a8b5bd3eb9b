// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolation tests one controller or one object goes wrong, and the others go on.
//
// README.md says what each file shows.
package isolation

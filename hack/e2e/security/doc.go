// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package security tests what callers may see, what the daemon may do, and what it must
// not say.
//
// README.md says what each file shows.
package security

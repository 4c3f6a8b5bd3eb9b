// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllermanager is the root of a library for controller managers: processes that
// host several controllers on shared informers, with leader election. It contains no code. The
// packages below it can be used together, through package manager, or separately.
//
// README.md shows a whole program.
package controllermanager

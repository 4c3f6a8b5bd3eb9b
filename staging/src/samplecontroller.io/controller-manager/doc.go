// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllermanager is the root of a library to build a controller manager
// of your own: one process that hosts several controllers on one set of informers
// and runs them while it leads. It holds no code. The packages below it can be used
// together, with package manager on top, or each alone.
//
// README.md shows a whole program.
package controllermanager

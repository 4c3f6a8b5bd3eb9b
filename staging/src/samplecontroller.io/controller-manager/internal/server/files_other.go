// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package server

import "math"

// maxFiles returns how many files the process may open.
func maxFiles() uint64 { return math.MaxUint64 }

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server

import (
	"math"
	"syscall"
)

// maxFiles returns how many files the process may open.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur) // signed on some systems
}

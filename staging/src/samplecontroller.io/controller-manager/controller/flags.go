// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"time"
)

// longest is what no duration may exceed: some are multiplied, and a year, or what is
// meant to be forever, is far from where that overflows.
const longest = 365 * 24 * time.Hour

// CheckDuration returns an error if the value of a duration flag is less than least or more
// than a year. It is for [Descriptor.Validate].
func CheckDuration(flag string, value, least time.Duration) []error {
	switch {
	case value < least:
		return []error{fmt.Errorf("--%s: %v is too short, must be at least %v", flag, value, least)}
	case value > longest:
		return []error{fmt.Errorf("--%s: %v is too long, must be at most %v", flag, value, longest)}
	default:
		return nil
	}
}

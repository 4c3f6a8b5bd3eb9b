// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"time"
)

// maxDuration is the maximum of all duration flags. Some are multiplied: a year is far from an
// overflow, and long enough to mean forever.
const maxDuration = 365 * 24 * time.Hour

// CheckDuration returns one error if the value of a duration flag is less than least, or more
// than a year, else none. flag is its name without dashes. It is for use in [Descriptor.Validate].
func CheckDuration(flag string, value, least time.Duration) []error {
	return named(flag, checkDuration(value, least))
}

// named returns the error of a flag with its name; none if err is nil.
func named(flag string, err error) []error {
	if err == nil {
		return nil
	}
	return []error{fmt.Errorf("--%s: %w", flag, err)}
}

func checkDuration(value, least time.Duration) error {
	switch {
	case value < least:
		return fmt.Errorf("%v is too short, must be at least %v", value, least)
	case value > maxDuration:
		return fmt.Errorf("%v is too long, must be at most %v", value, maxDuration)
	default:
		return nil
	}
}

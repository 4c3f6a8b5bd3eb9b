// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"os"
)

// NoticeDeadConnections has all clients that are made from now on notice within 8
// seconds that a connection is dead which was not closed, by asking for a sign of
// life after 5 seconds of silence. client-go's own 45 seconds are longer than a
// Lease. Variables that are set in the environment are left alone.
func NoticeDeadConnections() error {
	return cmp.Or(
		setDefault("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "5"),
		setDefault("HTTP2_PING_TIMEOUT_SECONDS", "3"),
	)
}

func setDefault(variable, value string) error {
	if os.Getenv(variable) != "" {
		return nil
	}
	return os.Setenv(variable, value)
}

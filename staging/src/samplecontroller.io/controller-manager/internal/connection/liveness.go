// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"os"
)

// NoticeDeadConnections makes all clients created from now on detect dead connections within
// 8 seconds: they send a ping after 5 seconds of silence. client-go's default of 45 seconds
// is longer than a Lease. Environment variables that are already set take precedence.
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

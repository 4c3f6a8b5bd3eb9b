// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreePort returns a port that no process listens on. It is below the kernel's ephemeral
// ports, so that no connection takes it before a program listens.
func FreePort() (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			listener.Close()
			return port, nil
		}
	}
	return 0, errors.New("no port from 20000 to 31999 is free")
}

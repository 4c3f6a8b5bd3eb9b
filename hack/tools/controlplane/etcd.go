//go:build !kubernetes_only

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func init() {
	programs["etcd"] = func() int {
		etcdmain.Main(os.Args)
		return 0
	}
}

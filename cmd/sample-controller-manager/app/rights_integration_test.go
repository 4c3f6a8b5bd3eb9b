// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// toRead are the rights to read a kind.
func (k kind) toRead() []clustertest.Right {
	return []clustertest.Right{k.May("list", ""), k.May("watch", "")}
}

// revoke takes rights from the daemon until it is told to give them back.
func revoke(t *testing.T, rights ...clustertest.Right) (grant func() time.Time) {
	t.Helper()
	return clustertest.Revoke(t, shared.Kube(), "sample-controller-manager-controllers", "system:serviceaccount:"+namespace+":"+namespace, rights...)
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// toRead are the permissions to read a kind.
func (k kind) toRead() []clustertest.Right {
	return []clustertest.Right{k.May("list", ""), k.May("watch", "")}
}

// revoke revokes permissions of the daemon until grant is called.
func revoke(t *testing.T, rights ...clustertest.Right) (grant func() time.Time) {
	t.Helper()
	return clustertest.Revoke(t, shared.Kube(), "sample-controller-manager-controllers", "system:serviceaccount:"+namespace+":"+namespace, rights...)
}

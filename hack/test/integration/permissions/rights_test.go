// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// revoke revokes permissions of the daemon until grant is called.
func revoke(t *testing.T, rights ...clustertest.Right) (grant func() time.Time) {
	t.Helper()
	return clustertest.Revoke(t, framework.Kube(), "sample-controller-manager-controllers", "system:serviceaccount:"+framework.DaemonName+":"+framework.DaemonName, rights...)
}

// toRead are the permissions to read a kind.
func toRead(k framework.Kind) []clustertest.Right {
	return []clustertest.Right{k.May("list", ""), k.May("watch", "")}
}

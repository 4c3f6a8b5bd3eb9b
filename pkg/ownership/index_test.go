// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"testing"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

func TestOwnedWithHashCollisions(t *testing.T) {
	const deployments = 3 * podrecord.Hashes
	c := newCaches(t)
	for i := range deployments {
		c.add(replicaSet(fmt.Sprintf("web-%d-1", i), by("Deployment", fmt.Sprintf("web-%d", i))))
		c.add(replicaSet(fmt.Sprintf("web-%d-alone", i)))
	}
	for i := range deployments {
		owner := by("Deployment", fmt.Sprintf("web-%d", i))
		found, err := Owned(c.replicaSets, "default", owner.UID)
		if want := owner.Name + "-1"; err != nil || len(found) != 1 || found[0].Name != want {
			t.Fatalf("owned by Deployment %s: %v, %v, want %s", owner.Name, found, err, want)
		}
		if found, err := Owned(c.replicaSets, "another", owner.UID); err != nil || len(found) > 0 {
			t.Fatalf("in another namespace: %v, %v", found, err)
		}
	}
	if entries := c.replicaSets.ListIndexFuncValues(byController); len(entries) > podrecord.Hashes || len(entries) < podrecord.Hashes/2 {
		t.Errorf("the index has %d entries, want %d or slightly fewer", len(entries), podrecord.Hashes)
	}
}

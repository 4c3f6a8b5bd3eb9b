// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"
)

// syncedAt is an informer that has synced, with a cache that has come to the version.
type syncedAt struct {
	cache.SharedIndexInformer // the rest of its methods is never called
	version                   string
}

func (i syncedAt) HasSynced() bool       { return true }
func (i syncedAt) GetStore() cache.Store { return store{version: i.version} }

type store struct {
	cache.Store // the rest of its methods is never called
	version     string
}

func (s store) LastStoreSyncResourceVersion() string { return s.version }

func TestWhatWasListedMustBeInTheCache(t *testing.T) {
	for name, tc := range map[string]struct {
		listed, cached string
		served         bool
	}{
		"an older version":          {"100", "99", false},
		"the same":                  {"100", "100", true},
		"a newer one":               {"100", "101", true},
		"what cannot be compared":   {"100", "", true},
		"what cannot be, either":    {"", "99", true},
		"more digits are a greater": {"1000", "999", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &informer{SharedIndexInformer: syncedAt{version: tc.cached}, resource: configMaps, handle: NewHandle(), err: ErrNotSynced}
				if i.setListed(&tc.listed); i.caughtUp(t.Context()) != tc.served || (i.err == nil) != tc.served {
					t.Errorf("served: %t, want %t", i.err == nil, tc.served)
				}
			})
		})
	}
}

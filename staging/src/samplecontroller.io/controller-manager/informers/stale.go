// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// Stale returns the sorted names of the resources whose caches do not follow the API server:
// they have not synced, permission is missing, the last list or watch failed, or the watch has
// been silent for 3 minutes. A resource whose API is not installed is ignored. It returns none if
// all follow. Package manager compares the names with those of another replica to find out which of
// the two can do more of a leader's work.
func (f *Factory) Stale() []string {
	var stale []string
	for _, i := range f.all() {
		if r := i.report(); r.Failure != nil || !r.Served && !apierrors.IsNotFound(r.Err) {
			stale = append(stale, r.Name())
		}
	}
	return stale
}

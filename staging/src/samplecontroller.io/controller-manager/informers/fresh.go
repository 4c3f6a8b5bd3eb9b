// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// freshSilence is how long the watch of a fresh cache may be silent. A bookmark comes once a
// minute.
const freshSilence = 90 * time.Second

// Fresh returns nil if all caches follow the API server. Otherwise the error names the
// resources that [Factory.Unfresh] returns.
func (f *Factory) Fresh() error {
	unfresh := f.Unfresh()
	if len(unfresh) == 0 {
		return nil
	}
	return fmt.Errorf("caches do not follow the API server: %s", strings.Join(unfresh, ", "))
}

// Unfresh returns the sorted names of the resources whose caches do not follow the API
// server: they have not synced, permission is missing, the last list or watch failed, or
// their watch has been silent for 90 seconds. A resource whose API is not installed is
// ignored. Compare the names with those of another replica to find out which of the two can
// do the work of a leader better.
func (f *Factory) Unfresh() []string {
	var unfresh []string
	for _, i := range f.all() {
		r := i.report()
		silent := r.Served && time.Since(r.LastSign) > freshSilence
		if silent || r.Failure != nil || !r.Served && !apierrors.IsNotFound(r.Err) {
			unfresh = append(unfresh, r.Name())
		}
	}
	return unfresh
}

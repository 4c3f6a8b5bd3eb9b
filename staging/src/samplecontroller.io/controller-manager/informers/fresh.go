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

// Fresh returns nil if all caches follow the API server. Otherwise the error names those
// that do not: they have not synced, permission is missing, or their watch has been silent
// for 90 seconds. A resource whose API is not installed is ignored.
func (f *Factory) Fresh() error {
	var old []string
	for _, i := range f.all() {
		r := i.state()
		silent := r.Served && time.Since(r.LastSign) > freshSilence
		if silent || !r.Served && !apierrors.IsNotFound(r.Err) {
			old = append(old, r.Name())
		}
	}
	if len(old) == 0 {
		return nil
	}
	return fmt.Errorf("caches do not follow the API server: %s", strings.Join(old, ", "))
}

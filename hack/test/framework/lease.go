// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// LeaseDuration is the duration of [ShortLease].
const LeaseDuration = 6 * time.Second

// IsWrite matches requests that write.
func IsWrite(event auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

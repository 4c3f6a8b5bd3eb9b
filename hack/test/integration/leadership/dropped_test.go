// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"slices"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// duringRestart matches requests that were received during a restart of the API server.
func duringRestart(event auditv1.Event) bool {
	received := event.RequestReceivedTimestamp.Time
	return slices.ContainsFunc(framework.Restarts, func(p framework.Period) bool {
		return received.After(p.From) &&
			received.Before(p.To)
	})
}

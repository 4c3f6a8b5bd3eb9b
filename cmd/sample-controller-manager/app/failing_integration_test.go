// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestFailingWriteIsReported makes each creation of a Deployment fail for more than a minute, with
// errors that may pass.
func TestFailingWriteIsReported(t *testing.T) {
	clustertest.Long(t)
	const (
		// The earliest times at which the failures are reported.
		failingAfter, failedAfter = 10 * time.Second, time.Minute
		// mostAttempts is more than the backoff makes in a minute, and less than a hot loop makes.
		mostAttempts = 20
	)
	startDaemon(t)
	for name, test := range map[string]struct {
		path, want string
	}{
		"webhook that denies as 500":         {"/deny-500", "denied the request: no Deployments on Fridays"},
		"webhook that denies as 503":         {"/deny-503", "denied the request: no Deployments on Fridays"},
		"webhook that fails":                 {"/fail", "failed calling webhook"},
		"webhook that answers too late":      {"/hang", "failed calling webhook"},
		"webhook that closes the connection": {"/hang-up", "failed calling webhook"},
		"webhook that is gone":               {"", "failed calling webhook"},
	} {
		for _, k := range kinds {
			t.Run(k.Kind+", "+name, func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t)
				lift := denyByWebhook(test.path)(t, ns)
				clustertest.WaitUntil(t, "the webhook is called", func(ctx context.Context) error {
					if err := tryDeployment(ctx, ns); err == nil || !strings.Contains(err.Error(), test.want) {
						return fmt.Errorf("creating one: %v, want %q", err, test.want)
					}
					return nil
				})

				begin := time.Now()
				k.Create(t, ns, "a", 1)
				for _, step := range []struct {
					conditionType, reason string
					earliest              time.Duration
				}{
					{"Reconciling", "WriteFailing", failingAfter},
					{"Stalled", "WriteFailed", failedAfter},
				} {
					object := k.waitCondition(t, ns, "a", step.conditionType, step.reason)
					if took := time.Since(begin); took < step.earliest {
						t.Errorf("%s after %v, want not before %v", step.reason, took, step.earliest)
					}
					c := meta.FindStatusCondition(object.Status.Conditions, step.conditionType)
					if !strings.Contains(c.Message, `creating Deployment "a" keeps failing: `) || !strings.Contains(c.Message, test.want) {
						t.Errorf("message %q, want one with the write and %q", c.Message, test.want)
					}
				}
				k.wantEvents(t, ns, "Warning WriteFailing", "Warning WriteFailed")
				calls := k.calls(t, ns)
				if got := calls["create deployments"]; got > mostAttempts {
					t.Errorf("%d attempts in a minute, want at most %d", got, mostAttempts)
				}
				if got := calls[k.patchStatus()]; got != 2 {
					t.Errorf("%d status writes, want one for each report", got)
				}

				lift()
				clustertest.WaitUntil(t, "Deployments are allowed", func(ctx context.Context) error { return tryDeployment(ctx, ns) })
				lifted := time.Now()
				k.waitReplicas(t, ns, "a", 1)
				took := time.Since(lifted)
				t.Logf("%s: %v; created %v after it was allowed", name, calls, took.Round(time.Millisecond))
				if took > healedWithin {
					t.Errorf("created %v after it was allowed, want %v at most", took, healedWithin)
				}
				beReady(t, ns, "a")
				k.waitCondition(t, ns, "a", "Ready", "Available")
			})
		}
	}
}

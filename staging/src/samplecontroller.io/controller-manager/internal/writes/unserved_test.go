// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestUnservedSubresourceIsProbedAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const foos, bars = "foos/status.example.com", "bars/status.example.com"
		var log bytes.Buffer
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		f := newFixture(t, nil)
		wantPaused := func(resource string, want time.Duration) {
			t.Helper()
			if got := f.transport.Paused(resource); got != want {
				t.Errorf("Paused(%q) = %v, want %v", resource, got, want)
			}
		}
		wantPaused(foos, 0)
		wantPaused(foos, 0)
		f.transport.NotServed(ctx, foos)
		wantPaused(foos, ProbeInterval)
		wantPaused(bars, 0)
		f.wantDenied(foos + " is not served: apply the CRDs of this version")
		since := f.transport.Denied()[0].Since
		for range 10 {
			time.Sleep(ProbeInterval)
			wantPaused(foos, 0)
			wantPaused(foos, ProbeInterval) // of all objects, one is written
			f.transport.NotServed(ctx, foos)
			f.wantDenied(foos + " is not served: apply the CRDs of this version")
		}
		if now := f.transport.Denied()[0].Since; !now.Equal(since) {
			t.Errorf("not served since %v, want %v, the first time", now, since)
		}
		f.transport.Served(ctx, foos)
		wantPaused(foos, 0)
		f.wantDenied()
		f.transport.Served(ctx, foos)
		for _, line := range []string{"Subresource is not served", "Subresource is served again"} {
			if n := strings.Count(log.String(), line); n != 1 {
				t.Errorf("logged %q %d times, want once:\n%s", line, n, &log)
			}
		}

		// Without objects to write, nothing shows that it is served.
		f.transport.NotServed(ctx, foos)
		time.Sleep(forgetAfter)
		f.wantDenied()
		wantPaused(foos, 0)
	})
}

func TestIsMissingPermission(t *testing.T) {
	f := newFixture(t, nil)
	f.api.deny(everything)
	missing := f.patch(t.Context(), "x", "web", "status")
	policy := apierrors.NewForbidden(deployments, "web", errors.New("no"))
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "no"}}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"authorizer": {missing, true},
		"policy":     {policy, false},
		"conflict":   {apierrors.NewConflict(deployments, "web", errors.New("changed")), false},
		"no answer":  {errors.New("connection refused"), false},
	} {
		if got := IsMissingPermission(test.err, Write{"patch", "deployments/status.apps"}, "web"); got != test.want {
			t.Errorf("%s: IsMissingPermission(%v) = %v, want %v", name, test.err, got, test.want)
		}
	}
}

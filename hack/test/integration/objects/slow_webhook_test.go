// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// startLate makes the webhook validate new Deployments in the namespace, and waits until the API
// server calls it.
func (h *webhook) startLate(t *testing.T, ns string, timeout int32, policy admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(validateDeployments(t, ns, server, admissionregistrationv1.ValidatingWebhook{
		ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL + "/late")},
		TimeoutSeconds: &timeout,
		FailurePolicy:  &policy,
	}))
	clustertest.WaitUntil(t, "the API server calls the webhook", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := tryDeployment(ctx, ns)
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if len(h.calls) == 0 {
			return fmt.Errorf("no call, creating a Deployment: %w", err)
		}
		return nil
	})
}

// TestSlowWebhookPreventsNoWrite has webhooks that take longer than --write-timeout.
func TestSlowWebhookPreventsNoWrite(t *testing.T) {
	framework.StartDaemon(t, "--write-timeout=3s")
	for name, test := range map[string]struct {
		webhook *webhook
		timeout int32
		policy  admissionregistrationv1.FailurePolicyType
	}{
		"answers late":              {&webhook{delay: 5 * time.Second}, 30, admissionregistrationv1.Fail},
		"hangs and may be left out": {&webhook{delay: time.Hour}, 6, admissionregistrationv1.Ignore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := framework.NewNamespace(t)
			test.webhook.startLate(t, ns, test.timeout, test.policy)
			framework.Foos.Create(t, ns, "a", 1)
			framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
			framework.WaitDeployment(t, ns, "a")
			test.webhook.mutex.Lock()
			defer test.webhook.mutex.Unlock()
			if tries := test.webhook.calls["a"]; tries < 2 {
				t.Errorf("the Deployment was created by try %d, so no try has timed out", tries)
			}
		})
	}
}

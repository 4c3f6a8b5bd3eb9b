// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// slowWebhook allows everything after a while, unless the API server gives up first.
type slowWebhook struct {
	delay time.Duration
	// long is how much time the API server has for a long write at least. It tells a webhook
	// how much there is.
	long time.Duration

	mutex       sync.Mutex
	calls       int
	longCalls   int // so far
	openLong    int
	mostOpen    int
	callsOfName map[string]int
}

func (h *slowWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Read the body: else the server does not notice that the client has gone.
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	limit, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer h.begin(review.Request.Name, limit)()
	select {
	case <-r.Context().Done():
		return
	case <-time.After(h.delay):
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports errors
}

// begin counts a call that the API server gives up after limit.
func (h *slowWebhook) begin(name string, limit time.Duration) (end func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.callsOfName == nil {
		h.callsOfName = map[string]int{}
	}
	h.calls++
	h.callsOfName[name]++
	if limit < h.long {
		return func() {}
	}
	h.longCalls++
	h.openLong++
	h.mostOpen = max(h.mostOpen, h.openLong)
	return func() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		h.openLong--
	}
}

// waitLongCall waits for another call of a long write.
func (h *slowWebhook) waitLongCall(t *testing.T) {
	t.Helper()
	so := h.countLongCalls()
	clustertest.WaitUntil(t, "a write takes long", func(context.Context) error {
		if h.countLongCalls() == so {
			return errors.New("no other call of a long write")
		}
		return nil
	})
}

func (h *slowWebhook) countLongCalls() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.longCalls
}

// start makes the webhook validate new Deployments in the namespace, and waits until the API
// server calls it.
func (h *slowWebhook) start(t *testing.T, ns string, timeout int32, policy admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(validateDeployments(t, ns, server, admissionregistrationv1.ValidatingWebhook{
		ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: &server.URL},
		TimeoutSeconds: &timeout,
		FailurePolicy:  &policy,
	}))
	clustertest.WaitUntil(t, "the API server calls the webhook", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := tryDeployment(ctx, ns)
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if h.calls == 0 {
			return fmt.Errorf("no call, creating a Deployment: %w", err)
		}
		return nil
	})
}

// TestSlowWebhookPreventsNoWrite has webhooks that take longer than --write-timeout.
func TestSlowWebhookPreventsNoWrite(t *testing.T) {
	framework.StartDaemon(t, "--write-timeout=3s")
	for name, test := range map[string]struct {
		webhook *slowWebhook
		timeout int32
		policy  admissionregistrationv1.FailurePolicyType
	}{
		"answers late":              {&slowWebhook{delay: 5 * time.Second}, 30, admissionregistrationv1.Fail},
		"hangs and may be left out": {&slowWebhook{delay: time.Hour}, 6, admissionregistrationv1.Ignore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := framework.NewNamespace(t)
			test.webhook.start(t, ns, test.timeout, test.policy)
			began := time.Now()
			framework.Foos.Create(t, ns, "a", 1)
			framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
			waitDeployment(t, ns, "a")
			test.webhook.mutex.Lock()
			defer test.webhook.mutex.Unlock()
			tries := test.webhook.callsOfName["a"]
			t.Logf("the Deployment was created after %v and %d tries", time.Since(began).Round(time.Millisecond), tries)
			if tries < 2 {
				t.Errorf("the Deployment was created by try %d, so no try has timed out", tries)
			}
		})
	}
}

func waitDeployment(t *testing.T, ns, name string) {
	t.Helper()
	clustertest.WaitUntil(t, "there is a Deployment", func(ctx context.Context) error {
		_, err := framework.Kube().AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// TestHungWebhookDelaysNoOther creates 100 Foos in a namespace with a webhook that hangs, and
// some elsewhere. Then it stops the daemon during a long write.
func TestHungWebhookDelaysNoOther(t *testing.T) {
	clustertest.Long(t)
	const (
		objects = 100
		workers = 10
		// served is what a user may wait for. At most is for a busy machine, on which a write may
		// take until it times out. Without a limit of long writes, all workers have one, each as
		// long as the Lease.
		served, atMost = 2 * time.Second, 15 * time.Second
	)
	ns, other := framework.NewNamespace(t), framework.NewNamespace(t)
	server := framework.StartDaemon(t, "--write-timeout=2s", "--sync-timeout=2m", "--controller-shutdown-timeout=20s",
		fmt.Sprintf("--concurrent-foo-syncs=%d", workers))
	webhook := &slowWebhook{delay: time.Hour, long: 10 * time.Second}
	webhook.start(t, ns, 30, admissionregistrationv1.Fail)
	for i := range objects {
		framework.Foos.Create(t, ns, fmt.Sprintf("hung-%d", i), 1)
	}
	webhook.waitLongCall(t)

	var took []time.Duration
	for i := range 10 {
		began, name := time.Now(), fmt.Sprintf("served-%d", i)
		framework.Foos.Create(t, other, name, 1)
		waitDeployment(t, other, name)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	median, slowest := took[len(took)/2], took[len(took)-1]
	t.Logf("beside %d objects whose writes hang, others got their Deployment within %v, half of them within %v, want %v",
		objects, slowest.Round(time.Millisecond), median.Round(time.Millisecond), served)
	if median > atMost {
		t.Errorf("half of the others took longer than %v to get a Deployment, want at most %v", median, atMost)
	}

	webhook.waitLongCall(t)
	began := time.Now()
	server.Stop()
	t.Logf("stopped during a long write within %v", time.Since(began).Round(time.Millisecond))
	if holder := ptr.Deref(framework.CurrentLease(t).Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("the Lease is held by %q after the daemon has stopped", holder)
	}
	webhook.mutex.Lock()
	defer webhook.mutex.Unlock()
	// A webhook notices late that the API server has given up. Only then may a second one begin.
	if webhook.mostOpen > 2 {
		t.Errorf("%d writes took long at the same time, want 1", webhook.mostOpen)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// denyByPolicy denies updates of Deployments with a ValidatingAdmissionPolicy, unless the CEL expression is true.
func denyByPolicy(t *testing.T, ns, unless string) (lift func()) {
	t.Helper()
	admission := framework.Kube().AdmissionregistrationV1()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: onDeployments(admissionregistrationv1.Update)},
				},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: unless, Message: "no Deployments on Fridays"}},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        ns,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources:    &admissionregistrationv1.MatchResources{NamespaceSelector: selectNamespace(ns)},
		},
	}
	bindings := admission.ValidatingAdmissionPolicyBindings()
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := bindings.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// denyByWebhook adds a webhook for new Deployments, and waits until it fails them with this message. Its path selects
// its behavior. Without a path, it is unreachable.
func denyByWebhook(t *testing.T, ns, path, message string) (lift func()) {
	t.Helper()
	server := httptest.NewTLSServer(&webhook{})
	t.Cleanup(server.Close)
	if path == "" {
		server.Close()
	}
	timeout := int32(30) // of the API server, for a response that comes at once
	if path == "/hang" {
		timeout = 1
	}
	lift = validateDeployments(t, ns, server, admissionregistrationv1.ValidatingWebhook{
		ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL + path)},
		TimeoutSeconds: &timeout,
	})
	clustertest.WaitUntil(t, "the webhook is called", func(ctx context.Context) error {
		if err := tryDeployment(ctx, ns); err == nil || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("creating one: %v, want %q", err, message)
		}
		return nil
	})
	return lift
}

// validateDeployments adds a webhook of the server for new Deployments in a namespace.
func validateDeployments(t *testing.T, ns string, server *httptest.Server,
	webhook admissionregistrationv1.ValidatingWebhook) (remove func()) {
	t.Helper()
	webhook.Name = "fridays.example.com"
	webhook.ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	webhook.Rules = []admissionregistrationv1.RuleWithOperations{onDeployments(admissionregistrationv1.Create)}
	webhook.NamespaceSelector = selectNamespace(ns)
	webhook.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
	webhook.AdmissionReviewVersions = []string{"v1"}
	configurations := framework.Kube().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhook},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := configurations.Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func onDeployments(operation admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}
}

func selectNamespace(ns string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}
}

// webhook is a validating webhook. The path of a request selects its behavior.
type webhook struct {
	delay time.Duration // of an answer to "/late"

	mutex sync.Mutex
	calls map[string]int // by name of the Deployment
}

// called counts a call.
func (h *webhook) called(name string) int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.calls == nil {
		h.calls = map[string]int{}
	}
	h.calls[name]++
	return h.calls[name]
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Read the body even without a response: else the server does not notice that the
	// client has gone.
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	calls := h.called(review.Request.Name)
	result := &metav1.Status{Message: "no Deployments on Fridays"}
	switch r.URL.Path {
	case "/late":
		select {
		case <-r.Context().Done():
			return
		case <-time.After(h.delay):
		}
	case "/deny":
	case "/deny-404":
		result.Code, result.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
	case "/deny-409":
		result.Code, result.Reason = http.StatusConflict, metav1.StatusReasonAlreadyExists
	case "/deny-500":
		result.Code = http.StatusInternalServerError
	case "/deny-503":
		result.Code = http.StatusServiceUnavailable
	case "/deny-changing":
		result.Message = fmt.Sprintf("this is refusal %d", calls)
	case "/fail":
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case "/hang":
		<-r.Context().Done()
		return
	default: // "/hang-up"
		panic(http.ErrAbortHandler)
	}
	allowed := r.URL.Path == "/late"
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: allowed, Result: result}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports errors
}

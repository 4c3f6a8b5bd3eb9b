// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// exhaustQuota sets a quota of no Deployments.
func exhaustQuota(t *testing.T, ns string) (lift func()) {
	t.Helper()
	quotas := framework.Kube().CoreV1().ResourceQuotas(ns)
	// kube-controller-manager would write the status.
	allow := func(quota *corev1.ResourceQuota, count string) {
		t.Helper()
		quota.Status.Hard = corev1.ResourceList{"count/deployments.apps": resource.MustParse(count)}
		quota.Status.Used = corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
		if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allow(quota, "0")
	clustertest.WaitUntil(t, "the quota is exhausted", func(ctx context.Context) error {
		if err := tryDeployment(ctx, ns); err == nil {
			return errors.New("a Deployment could be created")
		}
		return nil
	})
	return func() {
		t.Helper()
		quota, err := quotas.Get(t.Context(), "none", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// More than the object needs, because tests try to create another one.
		quota.Spec.Hard = corev1.ResourceList{"count/deployments.apps": resource.MustParse("9")}
		if quota, err = quotas.Update(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		allow(quota, "9")
	}
}

// denyByPolicy denies an operation with a ValidatingAdmissionPolicy, unless the CEL expression is true.
func denyByPolicy(operation admissionregistrationv1.OperationType, unless string) func(t *testing.T,
	ns string) (lift func()) {
	return func(t *testing.T, ns string) (lift func()) {
		t.Helper()
		admission := framework.Kube().AdmissionregistrationV1()
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: ns},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: onDeployments(operation)}},
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
		if _, err := admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return func() {
			t.Helper()
			if err := admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// denyByWebhook adds a webhook for new Deployments. Its path selects its behavior. Without
// a path, it is unreachable.
func denyByWebhook(path string) func(t *testing.T, ns string) (lift func()) {
	return func(t *testing.T, ns string) (lift func()) {
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
		return validateDeployments(t, ns, server, admissionregistrationv1.ValidatingWebhook{
			ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL + path)},
			TimeoutSeconds: &timeout,
		})
	}
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

// webhook is a validating webhook that never allows anything.
type webhook struct {
	refusals atomic.Int64
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
	result := &metav1.Status{Message: "no Deployments on Fridays"}
	switch r.URL.Path {
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
		result.Message = fmt.Sprintf("this is refusal %d", h.refusals.Add(1))
	case "/fail":
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case "/hang":
		<-r.Context().Done()
		return
	default: // "/hang-up"
		panic(http.ErrAbortHandler)
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: result}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports errors
}

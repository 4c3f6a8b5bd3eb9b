// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// TestQuotaDenial denies a write by a ResourceQuota, on a real API server by its admission.
func TestQuotaDenial(t *testing.T) {
	const ns = "failure-quota"
	runAnywhere(t, failureProgram(showing), func(t *testing.T, e *Env) {
		denied(t, e, ns, "exceeded quota: few", func() (allow func()) {
			if !e.real {
				rejecting(e, "create secrets", apierrors.NewForbidden(secretsResource, "a", errors.New("exceeded quota: few")))
				return func() { e.BeforeWrite(nil) }
			}
			q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "few"}}
			q.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("0")}
			q.Status.Hard, q.Status.Used = q.Spec.Hard, q.Spec.Hard // no controller may run that does this
			e.Create(q)
			return func() { e.Delete(q) }
		})
	}, "--namespace="+ns)
}

// TestPolicyDenial denies a write by a policy, on a real API server by a ValidatingAdmissionPolicy.
func TestPolicyDenial(t *testing.T) {
	const ns = "failure-policy"
	runAnywhere(t, failureProgram(showing), func(t *testing.T, e *Env) {
		denied(t, e, ns, "ValidatingAdmissionPolicy 'no-secrets'", func() (allow func()) {
			if !e.real {
				denial := apierrors.NewForbidden(secretsResource, "a", errors.New("ValidatingAdmissionPolicy 'no-secrets' denied request: no"))
				rejecting(e, "create secrets", denial)
				return func() { e.BeforeWrite(nil) }
			}
			policy, binding := noSecrets(ns)
			e.Create(policy, binding)
			return func() { e.Delete(binding, policy) }
		})
	}, "--namespace="+ns)
}

// noSecrets returns a policy that denies Secrets in a namespace.
func noSecrets(ns string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-secrets"}}
	policy.Spec.FailurePolicy = ptr.To(admissionv1.Fail)
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "no"}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
		}}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no-secrets"}}
	binding.Spec.PolicyName = policy.Name
	binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
	return policy, binding
}

// denied expects that a denied Secret is reported once, is tried again slowly whatever happens to its
// owner, and is created once the cause is gone. deny denies it.
func denied(t *testing.T, e *Env, ns, want string, deny func() (allow func())) {
	t.Helper()
	e.createNamespace(ns)
	allow := deny()
	e.until("deny Secrets", func() string { return allowed(e, ns) })
	began := time.Now()
	e.Create(widget(ns, "v1"))
	writes := e.Writes()
	for i := range 8 { // events of the owner, for about 8 s
		time.Sleep(time.Second)
		writes = append(writes, e.Writes()...)
		Update(e, ns, "a", func(w *Widget) { w.Labels = map[string]string{"touched": fmt.Sprint(i)} })
	}
	e.Settle()
	most := mostTries(time.Since(began))
	writes = append(writes, e.Writes()...)
	if creates := count(writes, "create secrets"); creates < 2 || creates > most {
		t.Errorf("%d tries in %v, want 2 to %d: %q", creates, time.Since(began), most, writes)
	}
	if n := count(writes, "patch widgets/status"); n != 1 {
		t.Errorf("%d statuses are written, want 1: %q", n, writes)
	}
	all, message := conditions(e, ns)
	expect(t, "conditions", all, "Stalled WriteDenied")
	if !strings.HasPrefix(message, "creating Secret "+ns+"/a was denied: ") || !strings.Contains(message, want) {
		t.Errorf("message %q, want one with %q", message, want)
	}
	expect(t, "Events", e.Events(), "Warning WriteDenied "+message)

	allow()
	e.until("create the Secret", func() string {
		writes = append(writes, e.Writes()...)
		if slices.Contains(writes, "create secrets "+ns+"/a") {
			return ""
		}
		return "it is not created"
	})
	e.Settle()
	all, _ = conditions(e, ns)
	expect(t, "conditions after the cause is gone", all)
	e.Writes()
	Update(e, ns, "a", func(w *Widget) { w.Labels = nil })
	e.Settle()
	expect(t, "later writes", e.Writes())
	expect(t, "Events after the cause is gone", e.Events())
}

// mostTries returns how often a denied write may be tried within a time. The tries are 1, 2, 4 s and so on
// apart.
func mostTries(within time.Duration) (most int) {
	for wait, at := time.Second, time.Duration(0); at <= within; wait, at = 2*wait, at+wait {
		most++
	}
	return most
}

// allowed returns "" if the API server denies Secrets in the namespace, which a policy begins to do some
// time after it was created.
func allowed(e *Env, ns string) string {
	if !e.real {
		return ""
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	secret.SetName("probe")
	client := e.client(corev1.SchemeGroupVersion.WithResource("secrets"), ns)
	_, err := client.Create(e.t.Context(), secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return "they are allowed"
	}
	return ""
}

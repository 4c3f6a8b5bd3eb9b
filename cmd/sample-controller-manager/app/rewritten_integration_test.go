// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// mirror is the prefix that admission adds to images.
const mirror = "mirror.example.com/"

// pinImages adds a webhook that makes all Deployments in a namespace pull images from the
// mirror.
func pinImages(t *testing.T, ns string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var deployment appsv1.Deployment
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &deployment); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, mirror) {
			review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
			review.Response.Patch = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, mirror+image)
		}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the API server reports errors
	}))
	t.Cleanup(server.Close)
	rule := onDeployments(admissionregistrationv1.OperationAll)
	rule.Resources = []string{"deployments"}
	_, err := shared.Kube().AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "pin.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules:                   []admissionregistrationv1.RuleWithOperations{rule},
			NamespaceSelector:       selectNamespace(ns),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRewrittenImageIsReported rewrites the declared image by admission, while other
// changes enqueue the object.
func TestRewrittenImageIsReported(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		k.Create(t, ns, "a", 1)
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		pinImages(t, ns)
		for getDeployment(t, ns, "a").Spec.Template.Spec.Containers[0].Image != mirror+"nginx:latest" { // until the API server has loaded the webhook
			kubectl(t, "-n", ns, "annotate", "deployment", "a", "touched="+fmt.Sprint(time.Now().UnixNano()), "--overwrite")
		}
		before := k.calls(t, ns)

		if err := k.TryPatch(t.Context(), ns, "a", `{"spec":{"image":"nginx:1.29"}}`); err != nil {
			t.Fatal(err)
		}
		object := k.waitCondition(t, ns, "a", "Stalled", "RewrittenByAdmission")
		want := fmt.Sprintf(`spec.image of %s "a" is "nginx:1.29", and admission changed it to %q in Deployment "a": `, k.Kind, mirror+"nginx:1.29")
		if c := meta.FindStatusCondition(object.Status.Conditions, "Ready"); c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, want) {
			t.Errorf("Ready = %+v, want False with %q", c, want)
		}
		for i := range 10 {
			kubectl(t, "-n", ns, "annotate", "deployment", "a", fmt.Sprintf("touched=%d", i), "--overwrite")
			k.annotate(t, ns, "a")
		}
		k.Create(t, ns, "last", 1) // once it is Ready, the cache has everything from before
		k.waitReplicas(t, ns, "last", 1)
		if got := k.calls(t, ns)["patch deployments"] - before["patch deployments"]; got != 1 {
			t.Errorf("%d patches of the Deployment, want 1", got)
		}

		// The rewritten image may be declared.
		if err := k.TryPatch(t.Context(), ns, "a", fmt.Sprintf(`{"spec":{"image":%q}}`, mirror+"nginx:1.29")); err != nil {
			t.Fatal(err)
		}
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
	})
}

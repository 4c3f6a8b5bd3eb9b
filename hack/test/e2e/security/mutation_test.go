// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// mutation is a change that admission makes to all Deployments.
type mutation struct {
	policy  string // the change as an item of a MutatingAdmissionPolicy's mutations
	webhook func(*admissionv1.AdmissionRequest, *appsv1.Deployment)
	made    func(*appsv1.Deployment) bool
}

var mutations = map[string]mutation{
	"label": {
		apply(`Object{metadata: Object.metadata{labels: {"cost-centre": "unassigned"}}}`),
		func(_ *admissionv1.AdmissionRequest, d *appsv1.Deployment) {
			metav1.SetMetaDataLabel(&d.ObjectMeta, "cost-centre", "unassigned")
		},
		func(d *appsv1.Deployment) bool { return d.Labels["cost-centre"] != "" },
	},
	"last writer": { // differs with each write
		apply(`Object{metadata: Object.metadata{annotations: {"last-writer":
			request.userInfo.username + (oldObject == null ? "" : " of " + oldObject.metadata.resourceVersion)}}}`),
		func(r *admissionv1.AdmissionRequest, d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "last-writer", r.UserInfo.Username+string(r.UID))
		},
		func(d *appsv1.Deployment) bool { return d.Annotations["last-writer"] != "" },
	},
	"imagePullSecrets": {
		`{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/template/spec/imagePullSecrets",
			value: [Object.spec.template.spec.imagePullSecrets{name: "mirror"}]}]'}}`,
		func(_ *admissionv1.AdmissionRequest, d *appsv1.Deployment) {
			d.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "mirror"}}
		},
		func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.ImagePullSecrets) == 1 },
	},
	"sidecar": {
		apply(`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
			containers: [Object.spec.template.spec.containers{name: "sidecar", image: "envoy"}]}}}}`),
		func(_ *admissionv1.AdmissionRequest, d *appsv1.Deployment) {
			if len(d.Spec.Template.Spec.Containers) == 1 {
				withSidecar(d)
			}
		},
		func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers) == 2 },
	},
}

func apply(expression string) string {
	return "{patchType: ApplyConfiguration, applyConfiguration: {expression: '" + expression + "'}}"
}

// TestDeploymentsAreScaledUnderMutation runs the daemon in the cage while admission changes each
// write of a Deployment. The cage sees the changed object.
func TestDeploymentsAreScaledUnderMutation(t *testing.T) {
	framework.ExpectDenials(t, byCage)
	waitForCage(t)
	framework.FreeLease(t)
	framework.StartReplica(t).Ready()
	for name, m := range mutations {
		t.Run(name+"/webhook", func(t *testing.T) {
			testScaling(t, m, func(ns string) { mutateByWebhook(t, ns, m) })
		})
		t.Run(name+"/policy", func(t *testing.T) {
			resources, err := framework.Kube().Discovery().ServerResourcesForGroupVersion(mutatingVersion)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool {
				return r.Name == "mutatingadmissionpolicies"
			}) {
				t.Skip("Kubernetes serves MutatingAdmissionPolicies from v1.36 on; the webhook makes the same change")
			}
			testScaling(t, m, func(ns string) { mutateByPolicy(t, ns, m) })
		})
	}
}

func testScaling(t *testing.T, m mutation, mutate func(ns string)) {
	ns, foos := framework.NewNamespace(t), framework.Foos
	foos.Create(t, ns, "a", 1)
	foos.WaitReady(t, ns, "a", 1)
	mutate(ns)
	waitMutated(t, ns, m)

	client := clientOf(t, framework.NewToken(t, framework.DaemonName, framework.DaemonName, nil))
	d, err := client.AppsV1().Deployments(ns).Patch(t.Context(), "a", types.StrategicMergePatchType,
		[]byte(scaling), metav1.PatchOptions{DryRun: dryRun})
	if err != nil || !m.made(d) {
		t.Errorf("patching with the daemon's token: %+v, %v, want a changed Deployment", d, err)
	}
	framework.Kubectl(t, "-n", ns, "scale", "foo", "a", "--replicas=3")
	waitWritten(t, ns, "a", "nginx:latest", 3, m.made)
	foos.Patch(t, ns, "a", `{"spec":{"image":"nginx:2","replicas":2}}`)
	waitWritten(t, ns, "a", "nginx:2", 2, m.made)
	foos.Create(t, ns, "b", 1)
	waitWritten(t, ns, "b", "nginx:latest", 1, m.made)
}

// waitMutated waits until admission changes a write of Deployment "a".
func waitMutated(t *testing.T, ns string, m mutation) {
	t.Helper()
	clustertest.WaitUntil(t, "the API server changes Deployments", func(ctx context.Context) error {
		d, err := framework.Kube().AppsV1().Deployments(ns).Patch(ctx, "a", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{DryRun: dryRun})
		if err == nil && !m.made(d) {
			err = errors.New("it does not yet")
		}
		return err
	})
}

// waitWritten waits for what the daemon and the admission policy have made of a Deployment.
func waitWritten(t *testing.T, ns, name, image string, replicas int32, made func(*appsv1.Deployment) bool) {
	t.Helper()
	clustertest.WaitUntil(t, "Deployment "+name+" is written", func(ctx context.Context) error {
		d, err := framework.Kube().AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.Containers[0]; *d.Spec.Replicas != replicas || got.Image != image || !made(d) {
			return fmt.Errorf("%d replicas of %s, changed by the policy: %t", *d.Spec.Replicas, got.Image, made(d))
		}
		return nil
	})
}

// mutatingVersion is the group and version of MutatingAdmissionPolicies.
const mutatingVersion = "admissionregistration.k8s.io/v1"

// mutateByPolicy adds a policy that changes all Deployments in a namespace until the end of the
// test.
func mutateByPolicy(t *testing.T, ns string, m mutation) {
	t.Helper()
	framework.ApplyManifest(t, ns, fmt.Sprintf(`
apiVersion: %[1]s
kind: MutatingAdmissionPolicy
metadata:
  name: %[2]s
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["apps"], apiVersions: ["v1"], resources: ["deployments"], operations: ["CREATE", "UPDATE"]}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - %[3]s
---
apiVersion: %[1]s
kind: MutatingAdmissionPolicyBinding
metadata:
  name: %[2]s
spec:
  policyName: %[2]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
`, mutatingVersion, ns, strings.Join(strings.Fields(m.policy), " ")))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		kinds := "mutatingadmissionpolicybinding,mutatingadmissionpolicy"
		if _, err := framework.Cluster().Kubectl(ctx, "delete", kinds, ns); err != nil {
			t.Error(err)
		}
	})
}

// mutateByWebhook adds a webhook that changes all Deployments in a namespace until the end of the
// test.
func mutateByWebhook(t *testing.T, ns string, m mutation) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var d appsv1.Deployment
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &d); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m.webhook(review.Request, &d)
		patch, err := json.Marshal([]map[string]any{
			{"op": "replace", "path": "/metadata", "value": d.ObjectMeta},
			{"op": "replace", "path": "/spec", "value": d.Spec},
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
		}
		_ = json.NewEncoder(w).Encode(review) // the API server reports errors
	}))
	t.Cleanup(server.Close)
	webhooks := framework.Kube().AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := webhooks.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutation.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"},
				},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestObjectStoredByOlderCRD stores objects with a CRD that allows any spec and has no default
// for the status, as sample-controller's has, and then applies the CRD of this version.
func TestObjectStoredByOlderCRD(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		framework.OwnAPIServer(t) // because it changes the CRD
		ns := framework.NewNamespace(t)
		const image = "nginx\u200b:1.29" // the CRD rejects it now
		allowAnySpec(t, k, ns)
		framework.Kubectl(t, "patch", "crd", k.CRD(), "--type=json",
			`--patch=[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status",
				"value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]`)
		clustertest.WaitUntil(t, "a status has no default", func(ctx context.Context) error {
			probe := k.New("probe", 1)
			if _, err := k.TryStore(ctx, ns, probe); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			defer framework.Kubectl(t, "-n", ns, "delete", k.Singular, "probe")
			if status, ok := raw(t, k, ns, "probe")["status"]; ok {
				return fmt.Errorf("status = %v", status)
			}
			return nil
		})
		if err := createRaw(k, t.Context(), ns, "a", fmt.Sprintf(`{"deploymentName":"a","replicas":1,"image":%q}`, image)); err != nil {
			t.Fatal(err)
		}
		framework.Kubectl(t, "-n", ns, "patch", k.Singular, "a", "--subresource=status", "--type=merge",
			"-p", `{"status":{"availableReplicas":1}}`)
		if err := framework.Cluster().Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		clustertest.WaitUntil(t, "the object reads as not observed", func(context.Context) error {
			status, _ := raw(t, k, ns, "a")["status"].(map[string]any)
			if status["observedGeneration"] != float64(-1) || status["availableReplicas"] != float64(1) {
				return fmt.Errorf("status = %v, want observedGeneration -1 and availableReplicas 1", status)
			}
			return nil
		})
		clustertest.WaitUntil(t, "the image is validated", func(ctx context.Context) error {
			spec := fmt.Sprintf(`{"deploymentName":"try","image":%q}`, image)
			if err := createRaw(k, ctx, ns, "try", spec, metav1.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("response of the API server: %v", err)
			}
			return nil
		})

		// An unchanged image hinders neither the daemon's status nor a user's change.
		framework.StartDaemon(t)
		k.WaitReplicas(t, ns, "a", 1)
		k.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
		k.Annotate(t, ns, "a")
		framework.Kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=2")
		k.WaitReplicas(t, ns, "a", 2)
		k.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
		if got := framework.Deployment(t, ns, "a").Spec.Template.Spec.Containers[0].Image; got != image {
			t.Errorf("image of the Deployment = %q, want %q", got, image)
		}
		patch := func(image string) error {
			return k.TryPatch(t.Context(), ns, "a", fmt.Sprintf(`{"spec":{"image":%q}}`, image))
		}
		if err := patch(image + image); err == nil || !strings.Contains(err.Error(), "must be an image reference without white space") {
			t.Errorf("error = %v, want the new image rejected", err)
		}
		digest := "@sha256:" + strings.Repeat("0", 64)
		for _, valid := range []string{"registry.example.com:5000/team/nginx" + digest, "[2001:db8::1]:5000/nginx_a:1.29-b"} {
			if err := patch(valid); err != nil {
				t.Error(err)
			}
		}
	})
}

// raw returns an object without the defaults of its Go type.
func raw(t *testing.T, k framework.Kind, ns, name string) map[string]any {
	t.Helper()
	body, err := client(k).Get().Namespace(ns).Resource(k.Resource).Name(name).Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// boundToken returns a token of the daemon's ServiceAccount that is bound to a Pod, like one
// mounted by a kubelet. Without a name, the token is not bound.
func boundToken(t *testing.T, pod string) string {
	t.Helper()
	if pod == "" {
		return framework.NewToken(t, daemon.Namespace, daemon.Name, nil)
	}
	return framework.NewToken(t, daemon.Namespace, daemon.Name, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod})
}

// tokenKubeconfig writes a kubeconfig with the token and returns its path.
func tokenKubeconfig(t *testing.T, token string) string {
	t.Helper()
	path, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), daemon.Namespace, daemon.Name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.TokenFile, user.Token = "", token
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")
	eventsResource      = corev1.SchemeGroupVersion.WithResource("events")
	leasesResource      = coordinationv1.SchemeGroupVersion.WithResource("leases")
	reviewsResource     = authenticationv1.SchemeGroupVersion.WithResource("tokenreviews")
)

// writer tests, by dry runs, whether it may make the daemon's writes in a namespace.
type writer struct {
	client dynamic.Interface
	ns     string
}

// owner is an owner reference to a Foo, without which the cage refuses the daemon's writes.
const owner = `{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","name":"parent","uid":%q,"controller":true}`

// createTargets creates the objects that a writer writes.
func createTargets(t *testing.T, ns string) {
	t.Helper()
	framework.Kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx")
	for _, k := range framework.Kinds {
		k.CreateNaming(t, ns, "parent", "web")
	}
	uid := framework.Foos.MustGet(t, ns, "parent").UID
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "web", "-p", fmt.Sprintf(`{"metadata":{"ownerReferences":[%s]}}`, fmt.Sprintf(owner, uid)))
}

// newWriter returns a writer with a token.
func newWriter(t *testing.T, ns, token string) *writer {
	t.Helper()
	client, err := dynamic.NewForConfig(framework.TokenConfig(token))
	if err != nil {
		t.Fatal(err)
	}
	return &writer{client, ns}
}

var dryRun = []string{metav1.DryRunAll}

// create tries to create a Deployment.
func (w *writer) create(ctx context.Context) error {
	labels := map[string]any{"app": "web"}
	reference := map[string]any{}
	if err := json.Unmarshal(fmt.Appendf(nil, owner, "uid"), &reference); err != nil {
		return err
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "new", "ownerReferences": []any{reference}},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx"}}},
			},
		},
	}}
	_, err := w.client.Resource(deploymentsResource).Namespace(w.ns).Create(ctx, deployment, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// writes tries all fenced writes, with the Deployment "web" and with an object "parent" of
// each kind, and returns their errors.
func (w *writer) writes(ctx context.Context) map[string]error {
	deployments := w.client.Resource(deploymentsResource).Namespace(w.ns)
	errs := map[string]error{"create deployments": w.create(ctx)}
	_, errs["patch deployments"] = deployments.Patch(ctx, "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{DryRun: dryRun})
	errs["delete deployments"] = deployments.Delete(ctx, "web", metav1.DeleteOptions{DryRun: dryRun})
	for _, k := range framework.Kinds {
		status := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "parent"}, "status": map[string]any{"replicas": int64(2)}}}
		status.SetGroupVersionKind(k.GroupVersionKind)
		_, errs["patch "+k.Resource+"/status"] = w.client.Resource(k.GroupVersion().WithResource(k.Resource)).Namespace(w.ns).
			ApplyStatus(ctx, "parent", status, metav1.ApplyOptions{FieldManager: k.Controller, DryRun: dryRun})
	}
	return errs
}

// wantUnfenced tries the writes of a standby.
func (w *writer) wantUnfenced(t *testing.T) {
	t.Helper()
	leases := w.client.Resource(leasesResource).Namespace(framework.DaemonName)
	lease, err := leases.Get(t.Context(), framework.DaemonName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{DryRun: dryRun}); err != nil {
		t.Errorf("update leases: %v", err)
	}
	event := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Event",
		"metadata":       map[string]any{"name": "event"},
		"involvedObject": map[string]any{"namespace": w.ns},
	}}
	if _, err := w.client.Resource(eventsResource).Namespace(w.ns).Create(t.Context(), event, metav1.CreateOptions{DryRun: dryRun}); err != nil {
		t.Errorf("create events: %v", err)
	}
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": "x"}}}
	if _, err := w.client.Resource(reviewsResource).Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
		t.Errorf("create tokenreviews: %v", err)
	}
}

// refused reports whether an error is from the fence.
func refused(err error) bool { return err != nil && strings.Contains(err.Error(), fence) }

// waitUntilMay waits until the writer may, or may not, write.
func (w *writer) waitUntilMay(t *testing.T, may bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("may write: %v", may), func(ctx context.Context) error {
		err := w.create(ctx)
		if may || err != nil && !refused(err) {
			return err
		}
		if err == nil {
			return errors.New("the write was admitted")
		}
		return nil
	})
}

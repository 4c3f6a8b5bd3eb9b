// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
)

// TestNamespaces has a controller that labels each Namespace, and deletes it once it is done.
func TestNamespaces(t *testing.T) {
	p := syncingNamespaces(func(ctx context.Context, client *corev1client.CoreV1Client,
		key cache.ObjectName) (time.Duration, error) {
		namespace, err := client.Namespaces().Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return 0, err
		case key.Name != "team" || namespace.DeletionTimestamp != nil:
		case namespace.Labels["done"] != "":
			return 0, client.Namespaces().Delete(ctx, key.Name, metav1.DeleteOptions{})
		case namespace.Labels["seen"] == "":
			_, err = client.Namespaces().Patch(ctx, key.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"true"}}}`), metav1.PatchOptions{})
		}
		return 0, err
	})
	p.Controllers[0].Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch", "patch", "delete"},
	}}
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		e.Settle()
		expect(t, "writes", e.Writes(), "patch namespaces team")
		if n, ok := Get[*corev1.Namespace](e, "", "team"); !ok || n.Labels["seen"] != "true" {
			t.Errorf("the Namespace is %v, %v, want it labeled", n, ok)
		}
		Update(e, "", "team", func(n *corev1.Namespace) { n.Labels["done"] = "true" })
		e.Settle()
		if n, ok := Get[*corev1.Namespace](e, "", "team"); !ok || n.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("the Namespace is %v, %v, want it to be terminating", n, ok)
		}
		e.CollectGarbage()
		if _, ok := Get[*corev1.Namespace](e, "", "team"); ok {
			t.Error("the Namespace still exists")
		}
		e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		e.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	})
}

// TestDryRunStoresNothing has a controller that only tries to label each Namespace.
func TestDryRunStoresNothing(t *testing.T) {
	p := syncingNamespaces(func(ctx context.Context, client *corev1client.CoreV1Client,
		key cache.ObjectName) (time.Duration, error) {
		patched, err := client.Namespaces().Patch(ctx, key.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"true"}}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && patched.Labels["seen"] != "true" {
			t.Errorf("the answer to a dry run is %v, want the label in it", patched)
		}
		return 0, err
	})
	p.Controllers[0].Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"},
		Verbs: []string{"list", "watch", "patch"}}}
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		e.Settle()
		if n, ok := Get[*corev1.Namespace](e, "", "team"); !ok || n.Labels["seen"] != "" {
			t.Errorf("the Namespace is %v, %v, want it without the label", n, ok)
		}
	})
}

// syncingNamespaces returns a program with a controller of Namespaces, whose syncs get its client.
func syncingNamespaces(sync func(context.Context, *corev1client.CoreV1Client, cache.ObjectName) (time.Duration,
	error)) manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		source, err := corev1client.NewForConfig(c.ReadConfig())
		if err != nil {
			return nil, err
		}
		client, err := corev1client.NewForConfig(c.ClientConfig())
		if err != nil {
			return nil, err
		}
		loop := c.Loop(func(ctx context.Context, key cache.ObjectName) (time.Duration,
			error) {
			return sync(ctx, client, key)
		})
		resource := corev1.SchemeGroupVersion.WithResource("namespaces")
		reconcile.WatchSelf(loop, informers.InformerFor[*corev1.Namespace](c.Informers(), resource, source.Namespaces()))
		return loop, nil
	})
}

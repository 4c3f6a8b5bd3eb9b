// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestGuard shows that a user with all rights on Foos and Icecreams can use them only as far
// as the user's rights on Deployments go.
func TestGuard(t *testing.T) {
	manifest := framework.Manifests(t, "components/guard/policy.yaml")
	framework.Apply(t, "-f", manifest)
	framework.OverKinds(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		framework.CreateAccount(t, ns, "user")
		user := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "user"}
		groups := []string{k.Group}
		framework.Grant(t, ns, user, rbacv1.PolicyRule{APIGroups: groups, Resources: []string{k.Resource, k.Resource + "/scale"},
			Verbs: []string{"*"}})
		client, err := dynamic.NewForConfig(framework.TokenConfig(framework.NewToken(t, ns, "user", nil)))
		if err != nil {
			t.Fatal(err)
		}
		objects := client.Resource(k.GroupVersion().WithResource(k.Resource)).Namespace(ns)
		create := func(ctx context.Context) error {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "new"}, "spec": map[string]any{"deploymentName": "new"}}}
			object.SetGroupVersionKind(k.GroupVersionKind)
			_, err := objects.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
			return err
		}
		patch := func(ctx context.Context, patch string, subresources ...string) error {
			_, err := objects.Patch(ctx, "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun},
				subresources...)
			return err
		}
		attempts := map[string]func(context.Context) error{
			"create":   create,
			"update":   func(ctx context.Context) error { return patch(ctx, `{"spec":{"image":"evil"}}`) },
			"scale":    func(ctx context.Context) error { return patch(ctx, `{"spec":{"replicas":7}}`, "scale") },
			"metadata": func(ctx context.Context) error { return patch(ctx, `{"metadata":{"labels":{"a":"b"}}}`) },
		}
		// want waits until just these attempts are allowed.
		want := func(when string, allowed ...string) {
			t.Helper()
			for what, attempt := range attempts {
				may := strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+what+" ")
				clustertest.WaitUntil(t, when+": "+what, func(ctx context.Context) error {
					switch err := attempt(ctx); {
					case may:
						return err
					case err == nil:
						return errors.New("it is allowed")
					case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "must be allowed to"):
						return err
					}
					return nil
				})
			}
		}
		k.Create(t, ns, "a", 1)
		want("without rights on Deployments", "metadata")
		framework.Grant(t, ns, user, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"update"}})
		want("with the right to scale Deployments", "metadata", "scale")
		framework.Grant(t, ns, user, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}})
		want("with the right to create Deployments", "metadata", "scale", "create")
		framework.Grant(t, ns, user, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"update"}})
		want("with the right to update Deployments", "metadata", "scale", "create", "update")
	})
}

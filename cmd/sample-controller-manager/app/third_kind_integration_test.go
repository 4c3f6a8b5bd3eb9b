// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/gentype"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/tolerant"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	pkgkinds "samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// sundaes are a third kind, of another API group. A Sundae has the fields of a Foo.
var sundaes = func() kind {
	k := foos
	k.GroupVersionKind = schema.GroupVersionKind{Group: "sundaes.example.com", Version: "v1alpha1", Kind: "Sundae"}
	k.Resource, k.Singular, k.App, k.Controller = "sundaes", "sundae", "sundae", "sundae-controller"
	return k
}()

// TestThirdKindIsServed registers a controller of a third kind that shares the cache of
// Deployments with ours.
func TestThirdKindIsServed(t *testing.T) {
	installSundaes(t)
	openCage(t)
	ns := newNamespace(t)
	kubeconfig, err := shared.Cluster().ServiceAccountKubeconfig(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	apptesting.StartWith(t, app.Program(sundaeDescriptor()), daemonFlags(kubeconfig)...)

	object := sundaes.New("a", 1)
	object.Spec.Image = "nginx:1.29"
	sundaes.Store(t, ns, object)
	sundaes.waitReplicas(t, ns, "a", 1) // takes some seconds: admission must discover Sundaes
	// Drift is only seen if the cache keeps the fields of its Deployments.
	kubectl(t, "-n", ns, "set", "image", "deployment/a", "nginx=httpd")
	kubectl(t, "-n", ns, "scale", "deployment", "a", "--replicas=5")
	clustertest.WaitUntil(t, "the Deployment is as declared", func(ctx context.Context) error {
		d, err := shared.Kube().AppsV1().Deployments(ns).Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.29" || *d.Spec.Replicas != 1 {
			return fmt.Errorf("image %s, %d replicas", image, *d.Spec.Replicas)
		}
		return nil
	})
	beReady(t, ns, "a")
	sundaes.waitCondition(t, ns, "a", "Ready", "Available")

	sundaes.Patch(t, ns, "a", `{"spec":{"deploymentName":"b"}}`)
	sundaes.waitReplicas(t, ns, "b", 1)
	beReady(t, ns, "b")
	sundaes.waitCondition(t, ns, "a", "Ready", "Available") // once the former Deployment is gone
	foos.Create(t, ns, "beside", 1)
	foos.waitCondition(t, ns, "beside", "Reconciling", "Progressing")
}

// installSundaes installs the CRD of Sundaes, and grants the daemon the permissions for
// them.
func installSundaes(t *testing.T) {
	t.Helper()
	crds := shared.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd, err := crds.Get(t.Context(), foos.CRD(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := crd.Object["spec"].(map[string]any)
	spec["group"] = sundaes.Group
	spec["names"] = map[string]any{"kind": sundaes.Kind, "listKind": sundaes.Kind + "List", "plural": sundaes.Resource, "singular": sundaes.Singular}
	crd.Object = map[string]any{"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "spec": spec, "metadata": map[string]any{"name": sundaes.CRD()}}
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sundaes.uninstall(t) })
	clustertest.WaitUntil(t, "Sundaes are served", func(ctx context.Context) error {
		_, err := sundaes.In("default").List(ctx, metav1.ListOptions{})
		return err
	})
	role := clusterRole(t, rbacv1.PolicyRule{APIGroups: []string{sundaes.Group}, Resources: []string{"*"}, Verbs: []string{"*"}})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: namespace}},
	}
	if _, err := shared.Kube().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// openCage lets the daemon write Deployments of Sundaes, as in the guide for a new kind.
func openCage(t *testing.T) {
	t.Helper()
	policies := shared.Kube().AdmissionregistrationV1().ValidatingAdmissionPolicies()
	replace := func(ctx context.Context, from, to string) {
		t.Helper()
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			cage, err := policies.Get(ctx, namespace+"-cage", metav1.GetOptions{})
			if err != nil {
				return err
			}
			changed := 0
			for i, v := range cage.Spec.Variables {
				if strings.Contains(v.Expression, from) {
					cage.Spec.Variables[i].Expression = strings.Replace(v.Expression, from, to, 1)
					changed++
				}
			}
			if changed != 1 {
				return fmt.Errorf("%d expressions of the cage contain %s, want 1", changed, from)
			}
			_, err = policies.Update(ctx, cage, metav1.UpdateOptions{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	const foo, sundae = `(o.kind == 'Foo' &&`, `o.kind == 'Sundae' || (o.kind == 'Foo' &&`
	replace(t.Context(), foo, sundae)
	t.Cleanup(func() { replace(context.WithoutCancel(t.Context()), sundae, foo) })
}

func sundaeDescriptor() controller.Descriptor {
	return controller.Descriptor{
		Name:    sundaes.Controller,
		New:     newSundaeController,
		Workers: 1,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{sundaes.Group}, Resources: []string{"sundaes"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{sundaes.Group}, Resources: []string{"sundaes/status"}, Verbs: []string{"update"}},
		},
	}
}

func newSundaeController(_ context.Context, c *controller.Context) (controller.Controller, error) {
	source, err := sundaeClients(c.ReadConfig())
	if err != nil {
		return nil, err
	}
	client, err := sundaeClients(c.ClientConfig())
	if err != nil {
		return nil, err
	}
	objects := informers.InformerFor[*samplev1alpha1.Foo](c.Informers(), sundaes.GroupVersion().WithResource(sundaes.Resource), source(c.Namespace()))
	o, err := pkgkinds.WorkloadOptions(c, sundaes.GroupVersion().WithResource(sundaes.Resource).GroupResource(), objects)
	if err != nil {
		return nil, err
	}
	return workload.NewController(sundaes.Controller, sundaeKind{client}, o)
}

// sundaeClients returns a function that creates clients for the Sundaes of a namespace.
func sundaeClients(config *restclient.Config) (func(namespace string) sundaeClient, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(sundaes.GroupVersionKind, &samplev1alpha1.Foo{})
	scheme.AddKnownTypeWithName(sundaes.GroupVersion().WithKind("SundaeList"), &samplev1alpha1.FooList{})
	metav1.AddToGroupVersion(scheme, sundaes.GroupVersion())
	return tolerant.ClientFor[*samplev1alpha1.Foo, *samplev1alpha1.FooList](config, scheme, sundaes.GroupVersion().WithResource(sundaes.Resource))
}

type sundaeClient = *gentype.ClientWithList[*samplev1alpha1.Foo, *samplev1alpha1.FooList]

// sundaeKind implements workload.Kind.
type sundaeKind struct {
	client func(namespace string) sundaeClient
}

func (sundaeKind) GroupVersionKind() schema.GroupVersionKind { return sundaes.GroupVersionKind }

func (sundaeKind) StatusResource() schema.GroupResource {
	return schema.GroupResource{Group: sundaes.Group, Resource: "sundaes/status"}
}

func (sundaeKind) Owner(sundae *samplev1alpha1.Foo) workload.Owner {
	return workload.Owner{
		Object:         sundae,
		Kind:           sundaes.GroupVersionKind,
		App:            sundaes.App,
		DeploymentName: sundae.Spec.DeploymentName,
		Replicas:       sundae.Spec.Replicas,
		Image:          sundae.Spec.Image,
		HadDeployment:  sundae.Status.Selector != "",
	}
}

func (k sundaeKind) List(ctx context.Context, namespace string, options metav1.ListOptions) (all []*samplev1alpha1.Foo, version string, err error) {
	list, err := k.client(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, list.ResourceVersion, nil
}

func (sundaeKind) Status(sundae *samplev1alpha1.Foo) workload.Status {
	return workload.Status{
		ObservedGeneration: sundae.Status.ObservedGeneration,
		Replicas:           sundae.Status.Replicas,
		ReadyReplicas:      sundae.Status.ReadyReplicas,
		AvailableReplicas:  sundae.Status.AvailableReplicas,
		Selector:           sundae.Status.Selector,
		UnavailableSince:   sundae.Status.UnavailableSince,
		Conditions:         workload.OwnConditions(sundae.Status.Conditions),
	}
}

func (sundaeKind) Conditions(o *samplev1alpha1.Foo) (int64, []metav1.Condition) {
	return o.Status.ObservedGeneration, o.Status.Conditions
}

func (k sundaeKind) SameStatus(a, b *samplev1alpha1.Foo) bool {
	return k.Status(a).Equal(k.Status(b))
}

func (k sundaeKind) StatusWrite(sundae *samplev1alpha1.Foo, current, wanted workload.Status) (workload.StatusWrite[*samplev1alpha1.Foo], error) {
	if current.Equal(wanted) {
		return nil, nil
	}
	sundae = sundae.DeepCopy()
	sundae.Status = samplev1alpha1.FooStatus{
		ObservedGeneration: wanted.ObservedGeneration,
		Replicas:           wanted.Replicas,
		ReadyReplicas:      wanted.ReadyReplicas,
		AvailableReplicas:  wanted.AvailableReplicas,
		Selector:           wanted.Selector,
		UnavailableSince:   wanted.UnavailableSince,
		Conditions:         wanted.Conditions,
	}
	return func(ctx context.Context) (*samplev1alpha1.Foo, error) {
		return k.client(sundae.Namespace).UpdateStatus(ctx, sundae, metav1.UpdateOptions{FieldManager: sundaes.Controller})
	}, nil
}

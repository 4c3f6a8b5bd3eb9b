// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
)

// requesting returns a program whose controller calls request with a client for each ConfigMap. The
// last error is in *last.
func requesting(last *error, request func(context.Context, kubernetes.Interface) error) manager.Program {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		client, err := kubernetes.NewForConfig(c.ClientConfig())
		if err != nil {
			return nil, err
		}
		return controller.For[*corev1.ConfigMap](c).Reconcile(func(ctx context.Context,
			_ *controller.Request[*corev1.ConfigMap]) error {
			*last = request(ctx, client)
			return nil
		})
	})
	p.Controllers[0].Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	return p
}

func TestUnsupportedRequestFailsTest(t *testing.T) {
	const unsupported = "the in-memory API server does not support "
	for name, test := range map[string]struct {
		request func(context.Context, kubernetes.Interface) error
		want    string
	}{
		"apply": {
			func(ctx context.Context, client kubernetes.Interface) error {
				_, err := client.CoreV1().Secrets("ns").Apply(ctx, applycorev1.Secret("a", "ns"), metav1.ApplyOptions{FieldManager: "test"})
				return err
			},
			unsupported + "server-side apply, as in PATCH /api/v1/namespaces/ns/secrets/a: test it on a real API server, with managertest.RunOn",
		},
		"subresource": {
			func(ctx context.Context, client kubernetes.Interface) error {
				_, err := client.AppsV1().Deployments("ns").UpdateScale(ctx, "a",
					&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.UpdateOptions{})
				return err
			},
			unsupported + "the subresource scale, as in PUT /apis/apps/v1/namespaces/ns/deployments/a/scale",
		},
		"collection": {
			func(ctx context.Context, client kubernetes.Interface) error {
				return client.CoreV1().Secrets("ns").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			},
			unsupported + "deletecollection, as in DELETE /api/v1/namespaces/ns/secrets",
		},
		"discovery": {
			func(_ context.Context, client kubernetes.Interface) error {
				_, err := client.Discovery().ServerVersion()
				return err
			},
			unsupported + "the path /version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			expectFailure(t, failing(t, requesting(&last, test.request), func(t *testing.T, e *Env) {
				e.Create(configMap("1"))
				e.Settle()
				Update(e, "ns", "a", func(c *corev1.ConfigMap) { c.Data["in"] = "2" })
				e.Settle()
			}), test.want)
			if last == nil {
				t.Error("the request succeeded")
			}
		})
	}
}

// TestScopeIsChecked sends requests for objects of Kubernetes with a wrong namespace.
func TestScopeIsChecked(t *testing.T) {
	for name, test := range map[string]struct {
		request func(context.Context, kubernetes.Interface) error
		want    string
		reason  metav1.StatusReason
	}{
		"create without namespace": {
			func(ctx context.Context, client kubernetes.Interface) error {
				_, err := client.CoreV1().Secrets("").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
					metav1.CreateOptions{})
				return err
			}, "secrets have a namespace, but the request has none", metav1.StatusReasonMethodNotAllowed,
		},
		"get without namespace": {
			func(ctx context.Context, client kubernetes.Interface) error {
				_, err := client.AppsV1().Deployments("").Get(ctx, "a", metav1.GetOptions{})
				return err
			}, "deployments.apps have a namespace, but the request has none", metav1.StatusReasonNotFound,
		},
		"namespace of a cluster-scoped object": {
			func(ctx context.Context, client kubernetes.Interface) error {
				return client.CoreV1().RESTClient().Post().Namespace("ns").Resource("nodes").Body(&corev1.Node{}).Do(ctx).Error()
			}, `nodes have no namespace, but the request has the namespace "ns"`, metav1.StatusReasonNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			Run(t, requesting(&last, test.request), func(t *testing.T, e *Env) {
				e.Create(configMap("1"))
				e.Settle()
			})
			status, ok := errors.AsType[interface {
				error
				Status() metav1.Status
			}](last)
			if !ok || status.Error() != test.want || status.Status().Reason != test.reason {
				t.Errorf("%v, want %s: %s", last, test.reason, test.want)
			}
		})
	}
}

func TestMetadataOnlyInformer(t *testing.T) {
	synced := map[string]map[string]string{}
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		client, err := metadata.NewForConfig(c.ReadConfig())
		if err != nil {
			return nil, err
		}
		resource := corev1.SchemeGroupVersion.WithResource("secrets")
		informer := informers.InformerFor[*metav1.PartialObjectMetadata](c.Informers(), resource,
			client.Resource(resource).Namespace(c.Namespace()))
		loop := c.Loop(func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
			if obj, found, _ := informer.GetIndexer().GetByKey(key.String()); found {
				synced[key.Name] = obj.(*metav1.PartialObjectMetadata).Labels
			} else {
				delete(synced, key.Name)
			}
			return 0, nil
		})
		reconcile.WatchSelf(loop, informer)
		return loop, nil
	})
	p.Controllers[0].Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
		Verbs: []string{"list", "watch"}}}
	Run(t, p, func(t *testing.T, e *Env) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"a": "1"}},
			Data: map[string][]byte{"a": nil}}
		e.Create(secret)
		e.Settle()
		Update(e, "ns", "a", func(s *corev1.Secret) { s.Labels["a"] = "2" })
		time.Sleep(time.Hour) // with bookmarks
		e.Settle()
		if len(synced) != 1 || synced["a"]["a"] != "2" {
			t.Errorf("synced %v, want the new label", synced)
		}
		e.Delete(secret)
		e.Settle()
		if len(synced) != 0 {
			t.Errorf("synced %v, want nothing after the deletion", synced)
		}
	})
}

var gateways = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "gateways"}

// Gateway is a kind whose plural is irregular. It has a status, like StatefulSets.
type Gateway struct{ appsv1.StatefulSet }

func (g *Gateway) DeepCopyObject() runtime.Object { return &Gateway{*g.DeepCopy()} }

// GatewayList is a list of Gateways.
type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Gateway `json:"items"`
}

func (l *GatewayList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Gateway))
	}
	return &out
}

func gatewayProgram(opts ...controller.Option) manager.Program {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		gateways := controller.For[*Gateway](c, append(opts, controller.MayPatchStatus())...)
		return gateways.Reconcile(func(ctx context.Context, r *controller.Request[*Gateway]) error {
			gateway, ok := r.Object()
			if !ok {
				return nil
			}
			gateway.Status.Replicas = 7
			return r.UpdateStatus(ctx, gateway)
		})
	})
	p.Scheme = func(s *runtime.Scheme) error {
		s.AddKnownTypes(gateways.GroupVersion(), &Gateway{}, &GatewayList{})
		metav1.AddToGroupVersion(s, gateways.GroupVersion())
		return nil
	}
	return p
}

// TestIrregularPlural declares the plural of a kind.
func TestIrregularPlural(t *testing.T) {
	const ns = "irregular-plural"
	runAnywhere(t, gatewayProgram(controller.Resource("gateways")), func(t *testing.T, e *Env) {
		e.InstallCRDs("testdata/gateways.yaml")
		statusOfGateway(t, e, ns)
		expect(t, "writes", e.Writes(), "patch gateways/status.test.example.com "+ns+"/a")
	}, "--namespace="+ns)
}

func TestGuessedPlural(t *testing.T) {
	Run(t, gatewayProgram(), func(t *testing.T, e *Env) { statusOfGateway(t, e, "ns") })
}

// statusOfGateway expects that the controller writes a status.
func statusOfGateway(t *testing.T, e *Env, ns string) {
	t.Helper()
	e.Create(&Gateway{appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}})
	e.Settle()
	if g, _ := Get[*Gateway](e, ns, "a"); g.Status.Replicas != 7 {
		t.Errorf("the status is %+v, want that of the controller", g.Status)
	}
}

// TestFirstStatusOfBuiltInKind writes a field that the API server encodes without omitempty.
func TestFirstStatusOfBuiltInKind(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if !ok {
				return nil
			}
			set.Status.Replicas = 7
			return r.UpdateStatus(ctx, set)
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		e.Settle()
		expect(t, "writes", e.Writes(), "patch statefulsets/status.apps ns/a")
	})
}

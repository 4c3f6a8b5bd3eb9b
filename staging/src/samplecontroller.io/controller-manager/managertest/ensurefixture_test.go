// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// Widget is a custom resource. Its fields in testdata/widgets.yaml are more than those of the type.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec struct {
		Containers []corev1.Container `json:"containers,omitempty"`
	} `json:"spec"`
	Status struct {
		Image      string             `json:"image"`
		Ports      int32              `json:"ports"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// Unmarshal is a method of types with a protobuf encoding, which custom resources do not have in the
// API server.
func (*Widget) Unmarshal([]byte) error { return errors.New("a Widget in protobuf") }

func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Containers, out.Status.Conditions = nil, slices.Clone(w.Status.Conditions)
	for i := range w.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, *w.Spec.Containers[i].DeepCopy())
	}
	return &out
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Widget `json:"items"`
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return &out
}

var widgets = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}

// ensureProgram has a controller that owns a Service or a Widget for each ConfigMap, and one that
// writes the status of Widgets.
func ensureProgram() manager.Program {
	return manager.Program{
		Name: "ensure-manager",
		Scheme: func(s *runtime.Scheme) error {
			s.AddKnownTypes(widgets.GroupVersion(), &Widget{}, &WidgetList{})
			metav1.AddToGroupVersion(s, widgets.GroupVersion())
			return nil
		},
		Controllers: []controller.Descriptor{
			{Name: "owner-controller", Workers: 1, New: newOwner}, {Name: "widget-controller", Workers: 1, New: newStatus},
		},
	}
}

func newOwner(_ context.Context, c *controller.Context) (controller.Controller, error) {
	configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
	services, widgets := controller.Owns[*corev1.Service](configMaps), controller.Owns[*Widget](configMaps)
	return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
		configMap, ok := r.Object()
		if !ok {
			return nil
		}
		if image := configMap.Data["image"]; image != "" {
			_, err := widgets.Ensure(ctx, r, configMap.Name, func(w *Widget) {
				i := slices.IndexFunc(w.Spec.Containers, func(c corev1.Container) bool { return c.Name == "app" })
				if i < 0 {
					w.Spec.Containers = append(w.Spec.Containers, corev1.Container{Name: "app"})
					i = len(w.Spec.Containers) - 1
				}
				w.Spec.Containers[i].Image = image
			})
			return err
		}
		_, err := services.Ensure(ctx, r, configMap.Name, func(service *corev1.Service) {
			service.Spec.Ports = wantedPorts(configMap.Data)
		})
		return err
	})
}

// wantedPorts returns complete ports, so that the defaults of the API server change nothing.
func wantedPorts(data map[string]string) (ports []corev1.ServicePort) {
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		if target, err := strconv.Atoi(data[string(protocol)]); err == nil {
			ports = append(ports, corev1.ServicePort{
				Name: strings.ToLower(string(protocol)), Protocol: protocol, Port: 53, TargetPort: intstr.FromInt(target),
			})
		}
	}
	return ports
}

func newStatus(_ context.Context, c *controller.Context) (controller.Controller, error) {
	return controller.For[*Widget](c, controller.MayPatchStatus()).Reconcile(func(ctx context.Context,
		r *controller.Request[*Widget]) error {
		w, ok := r.Object()
		if !ok {
			return nil
		}
		w.Status.Ports = 0
		for _, c := range w.Spec.Containers {
			w.Status.Image, w.Status.Ports = c.Image, w.Status.Ports+int32(len(c.Ports))
		}
		return r.UpdateStatus(ctx, w)
	})
}

// runEnsure runs a test in memory, or on a real API server if TEST_KUBECONFIG is set.
func runEnsure(t *testing.T, ns string, body func(*testing.T, *Env)) {
	runAnywhere(t, ensureProgram(), body, "--namespace="+ns)
}

// runAnywhere runs a test in memory, or on a real API server if TEST_KUBECONFIG is set.
func runAnywhere(t *testing.T, p manager.Program, body func(*testing.T, *Env), args ...string) {
	t.Helper()
	file := os.Getenv("TEST_KUBECONFIG")
	if file == "" {
		Run(t, p, body, args...)
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	RunOn(t, config, p, body, args...)
}

func owner(ns string, data map[string]string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: ns, Name: "a", Labels: map[string]string{"test": "ensure"}}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: data}
}

// patchWidget patches a Widget as a user, with fields that the type does not have.
func patchWidget(e *Env, ns, patch string, subresources ...string) {
	e.t.Helper()
	_, err := e.client(widgets, ns).Patch(e.t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{},
		subresources...)
	if err != nil {
		e.t.Fatal(err)
	}
}

// expectWidget compares the spec or the status of a Widget.
func expectWidget(e *Env, ns, field, want string) {
	e.t.Helper()
	o, err := e.client(widgets, ns).Get(e.t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		e.t.Fatal(err)
	}
	got, err := json.Marshal(o.Object[field])
	if err != nil {
		e.t.Fatal(err)
	}
	wantedJSON, _ := json.Marshal(wanted)
	if diff := cmp.Diff(string(wantedJSON), string(got)); diff != "" {
		e.t.Errorf("%s (-want +got):\n%s", field, diff)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"io"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

var crds = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// InstallCRDs creates the CustomResourceDefinitions in files of YAML, whose paths are relative to the
// folder of the test, and waits until they are established. From then on, the API server in
// memory validates, defaults and prunes such objects, as a real one does. Without them it stores what it
// gets. A real API server keeps the CRDs after the test, and those that it has already.
func (e *Env) InstallCRDs(files ...string) {
	e.t.Helper()
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			e.t.Fatalf("installing CRDs: %v", err)
		}
		defer file.Close()
		for documents := utilyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
			var crd unstructured.Unstructured
			err := documents.Decode(&crd.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil && crd.Object != nil {
				err = e.installCRD(&crd)
			}
			if err != nil {
				e.t.Fatalf("installing the CRDs of %s: %v", name, err)
			}
		}
	}
}

// installCRD creates a CRD, waits until its kind is served, and learns its resource.
func (e *Env) installCRD(crd *unstructured.Unstructured) error {
	client := e.user.Resource(crds)
	if _, err := client.Create(e.t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		e.mutex.Lock()
		e.resources[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] =
			schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
		e.mutex.Unlock()
	}
	return wait.PollUntilContextTimeout(e.t.Context(), pause, limit, true, func(ctx context.Context) (bool, error) {
		got, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		value, _, _ := unstructured.NestedFieldNoCopy(got.Object, "status", "conditions")
		conditions, _ := value.([]any) // null at first
		for _, condition := range conditions {
			fields, _ := condition.(map[string]any)
			if fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
}

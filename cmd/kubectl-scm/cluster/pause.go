// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"samplecontroller.io/controller-manager/debug"
)

// PauseAnnotation is what makes the daemon leave an object, or all objects of a namespace, alone.
const PauseAnnotation = Daemon + ".samplecontroller.io/paused"

// fieldManager is that of the plugin's own writes.
const fieldManager = "kubectl-scm"

// Pausable is an object or a namespace, which the annotation pauses.
type Pausable struct {
	// Kind is the kind of the object, and Namespace its namespace; the zero value and "" for a namespace.
	Kind            Kind
	Namespace, Name string
}

// String returns what people call it, such as Foo default/example-foo.
func (p Pausable) String() string {
	if p.IsNamespace() {
		return "namespace " + p.Name
	}
	return p.Kind.Name + " " + p.Namespace + "/" + p.Name
}

// Arguments returns the arguments that name it in a command of the plugin.
func (p Pausable) Arguments() string {
	if p.IsNamespace() {
		return "namespace " + p.Name
	}
	return p.Kind.Controller + " " + p.Namespace + "/" + p.Name
}

// IsNamespace returns whether it is a namespace.
func (p Pausable) IsNamespace() bool { return p.Kind.Name == "" }

// Pause sets the annotation of an object or a namespace, or removes it if value is nil. It returns the former
// value, nil if there was none, and why the object is paused as its status said before, empty if it was not.
func (c *Cluster) Pause(ctx context.Context, p Pausable, value *string) (before *string, paused Object, err error) {
	client := dynamic.ResourceInterface(c.namespaces())
	if !p.IsNamespace() {
		client = c.objects.Resource(p.Kind.Resource).Namespace(p.Namespace)
	}
	failed := func(doing string, err error) error {
		return fmt.Errorf("%s %s: %s", doing, p, debug.Short(err.Error()))
	}
	object, err := client.Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return nil, Object{}, failed("reading", err)
	}
	if now, ok := object.GetAnnotations()[PauseAnnotation]; ok {
		before = &now
	}
	if !p.IsNamespace() {
		paused = NewObject(p.Kind, object)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{PauseAnnotation: value}}})
	if err != nil {
		return nil, Object{}, err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if _, err = client.Patch(ctx, p.Name, types.MergePatchType, patch, options); err != nil {
		return nil, Object{}, failed("annotating", err)
	}
	return before, paused, nil
}

// IsNamespacePaused returns whether a namespace has an annotation that pauses all of its objects.
func (c *Cluster) IsNamespacePaused(ctx context.Context, name string) (bool, error) {
	namespace, err := c.namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %s", name, debug.Short(err.Error()))
	}
	value, ok := namespace.GetAnnotations()[PauseAnnotation]
	end, err := time.Parse(time.RFC3339, value)
	return ok && value != "false" && (err != nil || time.Now().Before(end)), nil // any other value pauses without end
}

func (c *Cluster) namespaces() dynamic.NamespaceableResourceInterface {
	return c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"samplecontroller.io/controller-manager/debug"
)

// Kind is a kind that the daemon keeps.
type Kind struct {
	// Name is the name of the kind, and Controller the alias of its controller.
	Name, Controller string
	// Resource is how the API server serves it.
	Resource schema.GroupVersionResource
}

// Kinds are the kinds that the daemon keeps.
var Kinds = []Kind{
	{"Foo", "foo", schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}},
	{"Icecream", "icecream", schema.GroupVersionResource{Group: "controller.nicoleh.io", Version: "v1alpha1", Resource: "icecreams"}},
}

// Controllers are the aliases of the daemon's controllers: one for each kind, and the one that summarizes Pods.
func Controllers() []string {
	var aliases []string
	for _, kind := range Kinds {
		aliases = append(aliases, kind.Controller)
	}
	return append(aliases, "status-aggregator")
}

// KindOf returns the kind with a name, in the forms that kubectl accepts, such as Foo, foo, foos or
// foos.samplecontroller.k8s.io.
func KindOf(given string) (Kind, error) {
	var known []string
	for _, kind := range Kinds {
		lower := strings.ToLower(given)
		if lower == kind.Controller || lower == kind.Resource.Resource || lower == kind.Resource.GroupResource().String() {
			return kind, nil
		}
		known = append(known, kind.Controller)
	}
	return Kind{}, fmt.Errorf("%q is not a kind that the daemon keeps: use %s", given, strings.Join(known, " or "))
}

// Object is a Foo or an Icecream with what its status says.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Condition is the condition that is True: Ready, Reconciling or Stalled; empty if the object has no status. Reason
	// and Message are its, and Since is when it became True.
	Condition string    `json:"condition"`
	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// Paused is why the daemon leaves the object alone, until when, and how to resume; empty if it does not.
	Paused string `json:"paused,omitempty"`
	// Next is what to do.
	Next string `json:"next,omitempty"`
	// Available of Replicas Pods are available. Pods summarizes what the others wait for.
	Available int64  `json:"available"`
	Replicas  int64  `json:"replicas"`
	Pods      string `json:"pods,omitempty"`
}

// Ready returns whether the object is Ready.
func (o Object) Ready() bool { return o.Condition == "Ready" }

// Key returns namespace/name.
func (o Object) Key() string { return o.Namespace + "/" + o.Name }

// NewObject returns what an object reports.
func NewObject(kind Kind, u *unstructured.Unstructured) Object {
	o := Object{Kind: kind.Name, Namespace: u.GetNamespace(), Name: u.GetName(), Since: u.GetCreationTimestamp().Time}
	var status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		AvailableReplicas  int64 `json:"availableReplicas"`
		Replicas           int64 `json:"replicas"`
		Pods               *struct {
			Summary string `json:"summary"`
		} `json:"pods"`
		Conditions []metav1.Condition `json:"conditions"`
	}
	content, _, _ := unstructured.NestedMap(u.Object, "status")
	// A status that does not fit is none.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status)
	o.Available, o.Replicas = status.AvailableReplicas, status.Replicas
	if status.Pods != nil {
		o.Pods = status.Pods.Summary
	}
	for _, condition := range status.Conditions {
		if condition.Status == metav1.ConditionTrue && condition.Type == "Paused" {
			o.Paused = condition.Message
		}
		if condition.Status == metav1.ConditionTrue && slices.Contains([]string{"Ready", "Reconciling", "Stalled"}, condition.Type) {
			o.Condition, o.Reason, o.Message = condition.Type, condition.Reason, condition.Message
			o.Since = condition.LastTransitionTime.Time
		}
	}
	if o.Ready() && status.ObservedGeneration < u.GetGeneration() {
		o.Condition, o.Reason, o.Message = "Reconciling", "Progressing", "the controller has not seen the last change of the spec"
	}
	if o.Next = NextStep(o.Reason); o.Condition == "" {
		o.Next = "no daemon has written a status yet: kubectl scm status"
	}
	if o.Paused != "" {
		o.Next = "resume it when it may be written again"
	}
	return o
}

// nextSteps say what to do about each reason, in one line. The table of troubleshooting.md says more.
var nextSteps = map[string]string{
	"Available":                "nothing",
	"Progressing":              "wait",
	"WaitingForDeletion":       "wait",
	"Terminating":              "wait for the controllers of the finalizers that the message names",
	"WriteFailing":             "wait; it is tried again",
	"WriteFailed":              "do what the message says; an admission webhook may be down",
	"DeletionBlocked":          "do what the message says; it has the command",
	"ReplicasContested":        "stop the other writer, or leave spec.replicas out",
	"ImageContested":           "stop the other writer, or leave spec.image out",
	"DeploymentConflict":       "set another deploymentName, or do what the message says",
	"InvalidSpec":              "correct the field that the message names",
	"ContainerMissing":         "rename the container back to nginx, or leave spec.image out",
	"DeploymentPaused":         "resume the Deployment: kubectl rollout resume",
	"WriteDenied":              "do what the message says; it is tried again with backoff",
	"RewrittenByAdmission":     "declare the result, or exempt the Deployment",
	"ProgressDeadlineExceeded": "look at the Pods: kubectl describe pod",
	"ReplicasUnavailable":      "look at the Pods: kubectl describe pod",
}

// NextStep says what to do about the reason of a condition, in one line. It is empty for an unknown reason.
func NextStep(reason string) string { return nextSteps[reason] }

// Objects calls visit for each object of a kind, in one namespace or, if it is empty, in all.
func (c *Cluster) Objects(ctx context.Context, kind Kind, namespace string, visit func(Object)) error {
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.objects.Resource(kind.Resource).Namespace(namespace).List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		visit(NewObject(kind, item.(*unstructured.Unstructured)))
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing %s: %s", kind.Resource.Resource, debug.Short(err.Error()))
	}
	return nil
}

// Object returns one object.
func (c *Cluster) Object(ctx context.Context, kind Kind, namespace, name string) (Object, error) {
	u, err := c.objects.Resource(kind.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("reading %s %s/%s: %s", kind.Name, namespace, name, debug.Short(err.Error()))
	}
	return NewObject(kind, u), nil
}

// Urgency orders objects for people: those that need somebody first, then those without a status, then those on their
// way. Within each, the one that has been so for longest comes first.
func Urgency(a, b Object) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since), cmp.Compare(a.Key(), b.Key()))
}

func rank(o Object) int {
	return slices.Index([]string{"Stalled", "", "Reconciling", "Ready"}, o.Condition)
}

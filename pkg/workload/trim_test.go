// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// ourGroups are the API groups of the kinds that own Deployments. The package does not know
// the last one.
var ourGroups = sets.New("samplecontroller.k8s.io", "controller.nicoleh.io", "sundaes.example.com")

func TestTrimKeepsManagersOfDeclarableFields(t *testing.T) {
	d := contested()
	d.ManagedFields = append(d.ManagedFields,
		managedBy("kubectl-set", "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:env":{"k:{\"name\":\"nginx\"}":{}},"f:image":{}}}}}}}`, 8),
		managedBy("sidecar-injector", "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:env":{}},"k:{\"name\":\"envoy\"}":{"f:image":{}}}}}}}`, 9))
	for range 2 { // transforms must be idempotent
		trim(d, ourGroups)
		got := map[string]fieldSet{}
		for _, entry := range d.ManagedFields {
			got[entry.Manager] = managed(entry)
			if size := len(entry.FieldsV1.GetRawString()); size > 120 {
				t.Errorf("kept %d bytes of the fields of %s", size, entry.Manager)
			}
		}
		want := map[string]fieldSet{"test-manager": {fieldReplicas: true, fieldImage: true},
			"kubectl": {fieldReplicas: true}, "autoscaler": {fieldReplicas: true}, "kubectl-set": {fieldImage: true}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected managers (-want +got):\n%s", diff)
		}
	}
	for f, want := range map[field]string{
		fieldReplicas: `field manager "autoscaler"`, fieldImage: `field manager "kubectl-set"`,
	} {
		if got := rivalOf(d, f, "test-manager"); got != want {
			t.Errorf("rival = %s, want %s", got, want)
		}
	}
	if got := rivalOf(deployment(), fieldReplicas, "test-manager"); got != "an unknown writer" {
		t.Errorf("rival = %s", got)
	}
}

// The entries of Deployments with different owners are parsed once. A label may have the name of
// a field.
func TestManagedFieldsAreParsedOnce(t *testing.T) {
	managedBySpec.Clear()
	t.Cleanup(managedBySpec.Clear)
	const replicas = `"f:spec":{"f:replicas":{}}`
	for i := range 10 {
		for metadata, want := range map[string]fieldSet{
			fmt.Sprintf(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"%d\"}":{}}},%s}`, i, replicas): {fieldReplicas: true},
			fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:app-%d":{},%s}}}`, i, replicas):                    {},
			fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:app-%d":{}}}}`, i):                                 {},
		} {
			if got := managed(managedBy("test", "", metadata, 1)); got != want {
				t.Errorf("%s: %v, want %v", metadata, got, want)
			}
		}
	}
	if got := managedBySpec.Len(); got != 2 {
		t.Errorf("parsed %d entries, want 2", got)
	}
}

// Trimming must change neither the decision about a Deployment nor the status.
func TestTrimChangesNoDecision(t *testing.T) {
	replicaSet := ownerReference("apps/v1", "ReplicaSet", "other", "uid-other")
	for name, d := range map[string]*appsv1.Deployment{
		"ours":                       deployment(),
		"ours, as declared":          deployment(withImage("nginx:1.29")),
		"ours, with another image":   deployment(withImage("other"), withStatus(3, 2, 1)),
		"ours, with a sidecar":       deployment(withSidecar),
		"ours, available":            deployment(withConditions("Available", "True", "", "Progressing", "True", "NewReplicaSetAvailable")),
		"ours, deadline exceeded":    deployment(withStatus(3, 2, 1), withConditions("Available", "False", "", "Progressing", "False", "ProgressDeadlineExceeded")),
		"ours, denied Pods":          deployment(withStatus(3, 2, 1), withConditions("Progressing", "True", "", "ReplicaFailure", "True", "FailedCreate")),
		"ours, paused":               deployment(withStatus(3, 2, 1), paused),
		"ours, paused without Pods":  deployment(withStatus(0, 0, 0), paused, rolledOut),
		"another Foo's":              deployment(withOwner(ownerReference(fooKind.GroupVersion().String(), "Foo", "b", "uid-b"))),
		"an Icecream's":              deployment(withOwner(ownerReference("controller.nicoleh.io/v1alpha1", "Icecream", "b", "uid-b"))),
		"a Sundae's":                 deployment(withOwner(ownerReference("sundaes.example.com/v1", "Sundae", "b", "uid-b"))),
		"owned by an earlier object": deployment(withOwner(ownerReference(fooKind.GroupVersion().String(), "Foo", "a", "uid-dead"))),
		"owned by another kind":      deployment(withOwner(replicaSet)),
		"no owner":                   deployment(withOwner(nil), withSelector("app", "other")),
		"no owner, created for us":   deployment(withOwner(nil)),
		"no owner, being deleted":    deployment(withOwner(nil), deleted),
	} {
		t.Run(name, func(t *testing.T) {
			p := owner(wantImage("nginx:1.29"))
			trimmed := d.DeepCopy()
			trimmed.Labels = map[string]string{"a": "b"}
			trimmed.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
			maps.Copy(trimmed.Annotations, d.Annotations)
			trimmed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
			trim(trimmed, ourGroups)
			if diff := cmp.Diff(decided(p, d), decided(p, trimmed)); diff != "" {
				t.Errorf("different decision (-whole +trimmed):\n%s", diff)
			}
			if conditions := trimmed.Status.Conditions; conditions != nil && len(conditions) == 0 {
				t.Error("the capacity of removed conditions is kept")
			}
			controller := metav1.GetControllerOf(d)
			ours := controller != nil && controller.Kind != "ReplicaSet"
			status := func(d *appsv1.Deployment) workloadv1alpha1.Status {
				return NewStatus(p, State{Deployment: d}, workloadv1alpha1.Status{}, metav1.Time{})
			}
			if diff := cmp.Diff(status(d), status(trimmed)); ours && diff != "" {
				t.Errorf("different status (-whole +trimmed):\n%s", diff)
			}
			containers := len(trimmed.Spec.Template.Spec.Containers)
			if len(trimmed.Labels) > 0 || len(trimmed.Annotations) != len(d.Annotations) || !ours &&
				containers+len(trimmed.ManagedFields) > 0 {
				t.Errorf("kept %+v", trimmed)
			}
			again := trimmed.DeepCopy()
			trim(again, ourGroups)
			if diff := cmp.Diff(trimmed, again); diff != "" {
				t.Errorf("trimmed twice (-once +twice):\n%s", diff)
			}
		})
	}
}

// decided describes the decision about a Deployment.
func decided(o Owner, live *appsv1.Deployment) string {
	d := decide(o, view{Live: live, Now: present})
	return fmt.Sprintf("%v %s %+v %v", d.Create, setBy(o, d), d.Blocker, d.Again)
}

// A patch addresses a container by its index.
func TestTrimKeepsIndexOfContainer(t *testing.T) {
	container := func(name, image string) corev1.Container {
		return corev1.Container{Name: name, Image: image, Args: []string{"-v"}}
	}
	for name, test := range map[string]struct{ containers, want []corev1.Container }{
		"none":             {},
		"ours":             {[]corev1.Container{container("nginx", "a")}, []corev1.Container{{Name: "nginx", Image: "a"}}},
		"a sidecar behind": {[]corev1.Container{container("nginx", "a"), container("log", "b")}, []corev1.Container{{Name: "nginx", Image: "a"}}},
		"a sidecar before": {[]corev1.Container{container("log", "b"), container("nginx", "a")}, []corev1.Container{{Name: "log"}, {Name: "nginx", Image: "a"}}},
		"two other sidecars": {[]corev1.Container{container("log", "b"), container("envoy", "c"), container("nginx", "a")},
			[]corev1.Container{{Name: "log"}, {Name: "envoy"}, {Name: "nginx", Image: "a"}}},
		"only another": {[]corev1.Container{container("log", "b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment()
			d.Spec.Template.Spec.Containers = test.containers
			for range 2 { // transforms must be idempotent
				trim(d, ourGroups)
				if diff := cmp.Diff(test.want, d.Spec.Template.Spec.Containers); diff != "" {
					t.Errorf("containers (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Many Deployments have the same containers in the cache. A correction sets the image in its copy only.
func TestDeclaringChangesNoSharedContainer(t *testing.T) {
	one, other := deployment(withSidecar), deployment(withSidecar)
	trim(one, ourGroups)
	trim(other, ourGroups)
	wanted := one.DeepCopy()
	owner(wantImage("nginx:1.29")).declare(wanted, fieldSet{fieldImage: true})
	if imageOf(wanted) != "nginx:1.29" || imageOf(one) != "nginx:latest" || imageOf(other) != "nginx:latest" {
		t.Errorf("images %q, %q and %q, want only the first changed", imageOf(wanted), imageOf(one), imageOf(other))
	}
}

// An informer may trim an object twice, and trimmed objects share parts.
func TestTrimmingTwiceChangesNoSharedCondition(t *testing.T) {
	for range 2 {
		d := deployment(withStatus(3, 3, 1), withConditions("Progressing", "True", reasonComplete))
		for i := range 2 {
			if trim(d, ourGroups); !rolloutComplete(d) {
				t.Errorf("trimmed %d times: conditions %v, want the completed rollout", i+1, d.Status.Conditions)
			}
		}
	}
}

func TestTrimKeepsOnlyFailureConditions(t *testing.T) {
	d := deployment(withConditions("Available", "True", "", "Available", "False", "", "Progressing", "True", "", "Progressing", "False", "",
		"ReplicaFailure", "True", "", "ReplicaFailure", "False", ""))
	trim(d, ourGroups)
	var got []string
	for _, c := range d.Status.Conditions {
		got = append(got, fmt.Sprint(c.Type, " ", c.Status))
	}
	if diff := cmp.Diff([]string{"Progressing False", "ReplicaFailure True"}, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// The selector of a Deployment without an owner shows whether it was created for one of our
// objects.
func TestTrimKeepsOnlyOurSelectors(t *testing.T) {
	ours := deployment().Spec.Selector
	for name, tc := range map[string]struct{ selector, want *metav1.LabelSelector }{
		"none":    {nil, nil},
		"foreign": {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}, nil},
		"ours":    {ours, ours},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(withOwner(nil))
			d.Spec.Selector = tc.selector
			trim(d, ourGroups)
			if diff := cmp.Diff(tc.want, d.Spec.Selector); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
		})
	}
}

// withConditions sets conditions, from a type, a status and a reason each.
func withConditions(words ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		for c := range slices.Chunk(words, 3) {
			d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
				Type: appsv1.DeploymentConditionType(c[0]), Status: corev1.ConditionStatus(c[1]), Reason: c[2], Message: "for some reason",
			})
		}
	}
}

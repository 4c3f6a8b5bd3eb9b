// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestDecideCreatesSameDeploymentAsSampleController(t *testing.T) {
	labels := map[string]string{"app": "nginx", "controller": "a"}
	want := decision{Create: &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:      "web",
			Namespace: "default",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "a", UID: "uid-a",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}}
	if diff := cmp.Diff(want, decide(owner(), view{})); diff != "" {
		t.Errorf("unexpected decision (-want +got):\n%s", diff)
	}
}

func TestDecideCreatesDeclaredFields(t *testing.T) {
	created := decide(owner(wantReplicas(nil), wantImage("nginx:1.29")), view{}).Create
	if created.Spec.Replicas != nil {
		t.Errorf("replicas = %d, want them left to the API's default", *created.Spec.Replicas)
	}
	if image := imageOf(created); image != "nginx:1.29" {
		t.Errorf("image = %q, want nginx:1.29", image)
	}
}

func TestDecidePatchesOnlyDeclaredDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		owner Owner
		live  *appsv1.Deployment
		want  string
	}{
		"nothing differs":                     {owner(), deployment(), ""},
		"replicas differ":                     {owner(), deployment(withReplicas(ptr.To[int32](5))), "replicas=3"},
		"replicas unset on the Deployment":    {owner(), deployment(withReplicas(nil)), "replicas=3"},
		"one replica is the default":          {owner(wantReplicas(ptr.To[int32](1))), deployment(withReplicas(nil)), ""},
		"replicas to zero":                    {owner(wantReplicas(ptr.To[int32](0))), deployment(), "replicas=0"},
		"replicas absent: hands off":          {owner(wantReplicas(nil)), deployment(withReplicas(ptr.To[int32](9))), ""},
		"image absent: hands off":             {owner(), deployment(withImage("httpd")), ""},
		"image declared and equal":            {owner(wantImage("nginx:latest")), deployment(), ""},
		"image declared and different":        {owner(wantImage("nginx:1.29")), deployment(), "image=nginx:1.29"},
		"image of a sidecar is not ours":      {owner(wantImage("nginx:latest")), deployment(withSidecar), ""},
		"image and replicas differ":           {owner(wantImage("nginx:1.29")), deployment(withReplicas(nil)), "replicas=3 image=nginx:1.29"},
		"labels and annotations are not ours": {owner(), deployment(func(d *appsv1.Deployment) { d.Labels = map[string]string{"x": "y"} }), ""},
		"a rollout restart is not ours to undo": {owner(), deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.live.DeepCopy()
			decision := decide(test.owner, view{Live: test.live})
			if diff := cmp.Diff(test.want, setBy(test.owner, decision)); diff != "" {
				t.Errorf("unexpected change (-want +got):\n%s", diff)
			}
			if decision.Create != nil || decision.Blocker != nil {
				t.Errorf("unexpected decision: %+v", decision)
			}
			if diff := cmp.Diff(before, test.live); diff != "" {
				t.Errorf("the live Deployment was changed:\n%s", diff)
			}
		})
	}
}

// setBy returns what the decision sets in the Deployment, "" if nothing.
func setBy(o Owner, d decision) string {
	var set []string
	for f, name := range [fieldCount]string{"replicas", "image"} {
		if d.Differing[f] {
			set = append(set, name+"="+o.declared(field(f)))
		}
	}
	return strings.Join(set, " ")
}

// Somebody renamed the container: a patch by its former name would add a second one.
func TestDecideAddsNoSecondContainer(t *testing.T) {
	renamed := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "web" }
	for name, test := range map[string]struct {
		live    *appsv1.Deployment
		image   string
		blocker bool
		patched fieldSet
	}{
		"image declared": {deployment(renamed), "nginx:1.29", true, fieldSet{}},
		"image and replicas declared": {deployment(renamed, withReplicas(ptr.To[int32](9))), "nginx:1.29", true,
			fieldSet{fieldReplicas: true}},
		"image left to others": {deployment(renamed), "", false, fieldSet{}},
		"not renamed":          {deployment(withImage("nginx:1.29")), "nginx:1.29", false, fieldSet{}},
	} {
		t.Run(name, func(t *testing.T) {
			trimmed := test.live.DeepCopy()
			trim(trimmed, ourGroups)
			for _, live := range list(test.live, trimmed) {
				d := decide(owner(wantImage(test.image)), view{Live: live})
				if d.Differing != test.patched || (d.Blocker != nil) != test.blocker {
					t.Errorf("decision = %+v, want blocker: %v, patched: %v", d, test.blocker, test.patched)
				}
				if o := d.Blocker; o != nil && (o.Reason != "ContainerMissing" || !strings.Contains(o.Message, `no container "nginx"`)) {
					t.Errorf("blocker = %+v, want ContainerMissing", o)
				}
			}
		})
	}
}

func TestDecideLeavesForeignDeployments(t *testing.T) {
	for name, test := range map[string]struct {
		live    *appsv1.Deployment
		reason  string
		message string
		passes  bool
	}{
		"no owner, not created by us":     {deployment(withOwner(nil), withSelector("app", "other")), "DeploymentConflict", `is not owned by Foo "a"`, false},
		"our owner reference removed":     {deployment(withOwner(nil)), "DeploymentConflict", `kubectl -n default patch deployment web -p '{"metadata":{"ownerReferences":[{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","name":"a","uid":"uid-a","controller":true,"blockOwnerDeletion":true}]}}'`, false},
		"another Foo":                     {deployment(withOwner(ownerReference("samplecontroller.k8s.io/v1alpha1", "Foo", "b", "uid-b"))), "DeploymentConflict", `is owned by Foo "b"`, false},
		"same name, another kind":         {deployment(withOwner(ownerReference("controller.nicoleh.io/v1alpha1", "Icecream", "a", "uid-x"))), "DeploymentConflict", `is owned by Icecream "a"`, false},
		"same name, another group":        {deployment(withOwner(ownerReference("example.com/v1", "Foo", "a", "uid-x"))), "DeploymentConflict", `is owned by Foo "a"`, false},
		"an earlier Foo of the same name": {deployment(withOwner(ownerReference("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-old"))), "WaitingForDeletion", "earlier", true},
		"an earlier Foo, another version": {deployment(withOwner(ownerReference("samplecontroller.k8s.io/v1", "Foo", "a", "uid-old"))), "WaitingForDeletion", "earlier", true},
		"our own, being deleted":          {deployment(deleted), "WaitingForDeletion", "is being deleted", true},
		"a foreign one, being deleted":    {deployment(withOwner(nil), deleted), "WaitingForDeletion", "is being deleted", true},
	} {
		t.Run(name, func(t *testing.T) {
			withReplicas(ptr.To[int32](9))(test.live) // a difference that would be patched
			decision := decide(owner(ownerSince(0)), view{Live: test.live, Now: present})
			if decision.Create != nil || decision.Correct != nil || decision.Blocker == nil {
				t.Fatalf("unexpected decision: %+v", decision)
			}
			o := decision.Blocker
			if o.Reason != test.reason || (ConditionFor(o.Reason) == "Reconciling") != test.passes ||
				!strings.Contains(o.Message, test.message) {
				t.Errorf("blocker = %+v, want reason %s, transient %v and a message with %q", o, test.reason, test.passes, test.message)
			}
		})
	}
}

// Nothing but a person ends these.
func TestDeletionThatDoesNotEndIsExplained(t *testing.T) {
	held := func(finalizers ...string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { deleted(d); d.Finalizers = finalizers }
	}
	ofEarlier := withOwner(ownerReference("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-old"))
	for name, test := range map[string]struct {
		live *appsv1.Deployment
		want string
	}{
		"held by a finalizer":                     {deployment(held("example.com/hold")), `finalizers ["example.com/hold"] hold it`},
		"waiting for its Pods":                    {deployment(held(metav1.FinalizerDeleteDependents)), ""},
		"missed by the garbage collector":         {deployment(ofEarlier), "kubectl -n default delete deployment web"},
		"of an earlier object, held by finalizer": {deployment(ofEarlier, held("example.com/hold")), "kubectl -n default patch deployment web --type=json"},
	} {
		t.Run(name, func(t *testing.T) {
			trimmed := test.live.DeepCopy()
			trim(trimmed, ourGroups)
			o := owner(ownerSince(0))
			d := decide(o, view{Live: trimmed, Now: present.Add(deletionGrace - time.Second)})
			if d.Blocker.Reason != "WaitingForDeletion" || (d.Again == time.Second) != (test.want != "") {
				t.Errorf("at first: %+v, again after %v", d.Blocker, d.Again)
			}
			reason := "DeletionBlocked"
			if test.want == "" {
				reason = "WaitingForDeletion"
			}
			d = decide(o, view{Live: trimmed, Now: present.Add(deletionGrace)})
			if d.Blocker.Reason != reason || !strings.Contains(d.Blocker.Message, test.want) || d.Again != 0 ||
				d.Correct != nil {
				t.Errorf("after a minute: %+v, want %s with %q", d.Blocker, reason, test.want)
			}
		})
	}
}

// Two Foos swap the names of their Deployments.
func TestConflictBetweenFoosSaysWayOut(t *testing.T) {
	other := deployment(withOwner(ownerReference("samplecontroller.k8s.io/v1alpha1", "Foo", "b", "uid-b")))
	message := decide(owner(), view{Live: other, Former: list(deployment(named("old")))}).Blocker.Message
	if !strings.Contains(message, "If that Foo names another Deployment now") || !strings.Contains(message, "kubectl -n default delete deployment web") {
		t.Errorf("message %q, want the way out", message)
	}
}

func TestDecideRejectsInvalidSpec(t *testing.T) {
	for name, test := range map[string]struct {
		owner   Owner
		message string
	}{
		"no deploymentName":      {owner(wantDeployment("")), "spec.deploymentName is empty"},
		"invalid deploymentName": {owner(wantDeployment("Web_1")), `spec.deploymentName "Web_1"`},
		"too long":               {owner(wantDeployment(strings.Repeat("a", 254))), "spec.deploymentName"},
		"negative replicas":      {owner(wantReplicas(ptr.To[int32](-1))), "spec.replicas is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, live := range []*appsv1.Deployment{nil, deployment()} {
				o := decide(test.owner, view{Live: live}).Blocker
				if o == nil || o.Reason != "InvalidSpec" || !strings.Contains(o.Message, test.message) {
					t.Errorf("blocker = %+v, want InvalidSpec with %q", o, test.message)
				}
			}
		})
	}
}

func TestLabelValue(t *testing.T) {
	for name, want := range map[string]string{
		"a":                            "a",
		strings.Repeat("a", 63):        strings.Repeat("a", 63),
		strings.Repeat("a", 64):        strings.Repeat("a", 52) + "_ffe054fe7a",
		strings.Repeat("b", 63) + "c":  strings.Repeat("b", 52) + "_4ac281b4c9",
		strings.Repeat("b", 253):       strings.Repeat("b", 52) + "_af5a4872cb",
		strings.Repeat("b", 252) + "c": strings.Repeat("b", 52) + "_6b329cb096",
		"a.b-c":                        "a.b-c",
		strings.Repeat("a", 51) + ".b" + strings.Repeat("c", 60): "",
	} {
		got := labelValue(name)
		if want == "" {
			want = got // only its form is checked below
		}
		if got != want {
			t.Errorf("labelValue(%q) = %q, want %q", name, got, want)
		}
		if len(got) > 63 {
			t.Errorf("labelValue(%q) = %q has %d characters", name, got, len(got))
		}
		if len(name) > 63 && !strings.Contains(got, "_") {
			t.Errorf("labelValue(%q) = %q could be the name of another object", name, got)
		}
	}
	if a, b := labelValue(strings.Repeat("a", 64)), labelValue(strings.Repeat("a", 65)); a == b {
		t.Errorf("two names have the same label value %q", a)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

func TestFooIsServedWithTheFewestCalls(t *testing.T) {
	ns := newNamespace(t)
	// With one worker a Foo that is made later is served later.
	server := startDaemon(t, "--concurrent-foo-syncs=1")
	createFoo(t, ns, "a", 2)
	waitCondition(t, ns, "a", "Reconciling", "Progressing")
	wantCalls(t, ns, "create deployments", "patch foos/status")

	beReady(t, ns, "a")
	waitCondition(t, ns, "a", "Ready", "Available")
	wantCalls(t, ns, "create deployments", "patch foos/status", "patch foos/status")

	// A sync that finds nothing to do makes no call, however it was woken.
	annotate(t, ns, "a")
	createFoo(t, ns, "later", 1)
	waitCondition(t, ns, "later", "Reconciling", "Progressing")
	wantCalls(t, ns, "create deployments", "patch foos/status", "patch foos/status", "create deployments", "patch foos/status")

	// Nor does a restart.
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "--concurrent-foo-syncs=1")
	createFoo(t, ns, "last", 1)
	waitCondition(t, ns, "last", "Reconciling", "Progressing")
	wantCalls(t, ns, "create deployments", "patch foos/status", "patch foos/status", "create deployments", "patch foos/status", "create deployments", "patch foos/status")

	events, err := kube.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Foo"})
	if err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || events.Items[0].Reason != "Synced" || events.Items[0].Type != corev1.EventTypeNormal ||
		events.Items[0].InvolvedObject.Name != "a" || events.Items[0].Source.Component != "foo-controller" {
		t.Errorf("Events = %+v, want one Synced of Foo a by foo-controller", events.Items)
	}
}

func TestFooIsScaled(t *testing.T) {
	ns := newNamespace(t)
	startDaemon(t)
	createFoo(t, ns, "a", 1)
	for _, replicas := range []int32{3, 1, 0, 2} {
		kubectl(t, "-n", ns, "scale", "foo", "a", fmt.Sprintf("--replicas=%d", replicas))
		waitReplicas(t, ns, "a", replicas)
		beReady(t, ns, "a")
		kubectl(t, "-n", ns, "wait", "foo/a", "--for=condition=Ready", "--timeout=30s")
		eventually(t, "the status tells the counts", func(ctx context.Context) error {
			foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if s := foo.Status; s.Replicas != replicas || s.ReadyReplicas != replicas || s.AvailableReplicas != replicas || s.ObservedGeneration != foo.Generation {
				return fmt.Errorf("status %+v, want %d of each", s, replicas)
			}
			return nil
		})
	}
	if got := kubectl(t, "-n", ns, "get", "foo", "a", "-o", `jsonpath={.status.selector}`); got != "app=nginx,controller=a" {
		t.Errorf("selector = %q", got)
	}
	table := strings.Split(strings.TrimSpace(kubectl(t, "-n", ns, "get", "foo")), "\n")
	if got := strings.Join(strings.Fields(table[0]), " "); got != "NAME DEPLOYMENT DESIRED AVAILABLE READY REASON AGE" {
		t.Errorf("columns = %q", got)
	}
	if got := strings.Join(strings.Fields(table[1])[:6], " "); got != "a a 2 2 True Available" {
		t.Errorf("row = %q", got)
	}
}

func TestDriftOfWhatIsDeclaredIsUndone(t *testing.T) {
	ns := newNamespace(t)
	startDaemon(t)
	foo := newFoo("a", 2)
	foo.Spec.Image = "nginx:1.29"
	create(t, ns, foo)
	waitReplicas(t, ns, "a", 2)

	kubectl(t, "-n", ns, "scale", "deployment", "a", "--replicas=5")
	waitReplicas(t, ns, "a", 2)
	kubectl(t, "-n", ns, "label", "deployment", "a", "team=blue")
	kubectl(t, "-n", ns, "set", "resources", "deployment", "a", "--limits=cpu=1")
	kubectl(t, "-n", ns, "set", "image", "deployment/a", "nginx=httpd")
	eventually(t, "the image is back", func(ctx context.Context) error {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		container := d.Spec.Template.Spec.Containers[0]
		if container.Image != "nginx:1.29" {
			return fmt.Errorf("image %s", container.Image)
		}
		if d.Labels["team"] != "blue" || container.Resources.Limits.Cpu().String() != "1" {
			return fmt.Errorf("labels %v and resources %v are not those of their owner", d.Labels, container.Resources)
		}
		return nil
	})
}

func TestForeignDeploymentIsLeftAlone(t *testing.T) {
	ns := newNamespace(t)
	startDaemon(t)
	kubectl(t, "-n", ns, "create", "deployment", "a", "--image=httpd")
	before := getDeployment(t, ns, "a")
	createFoo(t, ns, "a", 3)
	foo := waitCondition(t, ns, "a", "Stalled", "DeploymentConflict")
	if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, `Deployment "a"`) {
		t.Errorf("Ready = %+v, want False and a message that names the Deployment", ready)
	}
	eventually(t, "the Event ErrResourceExists is there", func(ctx context.Context) error {
		events, err := kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=ErrResourceExists,type=Warning"})
		if err == nil && len(events.Items) != 1 {
			err = fmt.Errorf("%d Events", len(events.Items))
		}
		return err
	})
	if diff := cmp.Diff(before, getDeployment(t, ns, "a")); diff != "" {
		t.Errorf("the foreign Deployment was changed:\n%s", diff)
	}
	// When it goes, its place is taken at once.
	kubectl(t, "-n", ns, "delete", "deployment", "a")
	waitReplicas(t, ns, "a", 3)
	waitCondition(t, ns, "a", "Reconciling", "Progressing")
}

func TestInvalidFooIsRefusedWithHelp(t *testing.T) {
	ns := newNamespace(t)
	for name, test := range map[string]struct {
		spec samplev1alpha1.FooSpec
		want string
	}{
		"empty deploymentName":     {samplev1alpha1.FooSpec{}, `must be a valid Deployment name, for example "example-foo"`},
		"malformed deploymentName": {samplev1alpha1.FooSpec{DeploymentName: "My_App"}, `must be a valid Deployment name, for example "example-foo"`},
		"negative replicas":        {samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](-1)}, "should be greater than or equal to 0"},
		"image with white space":   {samplev1alpha1.FooSpec{DeploymentName: "a", Image: "nginx latest"}, "must be an image reference without white space"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sample.SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: test.spec}, metav1.CreateOptions{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestFooThatNobodyLookedAtIsNotReady(t *testing.T) {
	ns := newNamespace(t) // no daemon runs
	foo := createFoo(t, ns, "a", 1)
	if foo.Status.ObservedGeneration != -1 || foo.Status.Conditions != nil {
		t.Errorf("status = %+v, want generation -1 and no conditions", foo.Status)
	}
}

func newFoo(name string, replicas int32) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}
}

func createFoo(t *testing.T, ns, name string, replicas int32) *samplev1alpha1.Foo {
	t.Helper()
	return create(t, ns, newFoo(name, replicas))
}

func create(t *testing.T, ns string, foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	t.Helper()
	created, err := sample.SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), foo, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// annotate wakes the controller with a change that asks for nothing.
func annotate(t *testing.T, ns, name string) {
	t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"touched":"true"}}}`)
	if _, err := sample.SamplecontrollerV1alpha1().Foos(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitCondition waits until a condition of the Foo is True for the given reason.
func waitCondition(t *testing.T, ns, name, conditionType, reason string) *samplev1alpha1.Foo {
	t.Helper()
	var foo *samplev1alpha1.Foo
	eventually(t, fmt.Sprintf("Foo %s is %s for %s", name, conditionType, reason), func(ctx context.Context) (err error) {
		if foo, err = sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		c := meta.FindStatusCondition(foo.Status.Conditions, conditionType)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || c.ObservedGeneration != foo.Generation {
			return fmt.Errorf("conditions %+v", foo.Status.Conditions)
		}
		return nil
	})
	return foo
}

func getDeployment(t *testing.T, ns, name string) *appsv1.Deployment {
	t.Helper()
	d, err := kube.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// waitReplicas waits until the Foo's Deployment asks for so many replicas.
func waitReplicas(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("Deployment %s asks for %d replicas of its Foo", name, replicas), func(ctx context.Context) error {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(d); owner == nil || owner.Kind != "Foo" {
			return errors.New("it is not owned by a Foo")
		}
		if *d.Spec.Replicas != replicas {
			return fmt.Errorf("it asks for %d", *d.Spec.Replicas)
		}
		return nil
	})
}

// beReady writes the Deployment's status as kube-controller-manager does once all
// Pods run.
func beReady(t *testing.T, ns, name string) {
	t.Helper()
	d := getDeployment(t, ns, name)
	n := *d.Spec.Replicas
	// Counts of zero are spelt out, which the type would omit.
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`, d.Generation, n, n, n, n)
	if _, err := kube.AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// wantCalls compares the calls that foo-controller has made in a namespace.
func wantCalls(t *testing.T, ns string, want ...string) {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent("foo-controller"), cluster.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, event := range events {
		got = append(got, cluster.Call(event))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected calls of foo-controller (-want +got):\n%s", diff)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := testCluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

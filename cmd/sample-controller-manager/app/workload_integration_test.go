// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
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

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

func TestObjectIsServedWithFewestCalls(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		// With one worker, objects are synced in the order of their creation.
		server := startDaemon(t, k.oneWorker())
		k.catchUp(t)
		k.Create(t, ns, "a", 2)
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		calls := []string{"create deployments", k.patchStatus()}
		k.wantCalls(t, ns, calls...)

		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		calls = append(calls, k.patchStatus())
		k.wantCalls(t, ns, calls...)

		// A sync with nothing to write makes no call, whatever enqueued it.
		k.annotate(t, ns, "a")
		k.Create(t, ns, "later", 1)
		k.waitCondition(t, ns, "later", "Reconciling", "Progressing")
		calls = append(calls, "create deployments", k.patchStatus())
		k.wantCalls(t, ns, calls...)

		// Nor does a restart.
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		startDaemon(t, k.oneWorker())
		k.catchUp(t)
		k.Create(t, ns, "last", 1)
		k.waitCondition(t, ns, "last", "Reconciling", "Progressing")
		calls = append(calls, "create deployments", k.patchStatus())
		k.wantCalls(t, ns, calls...)

		events, err := shared.Kube().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind})
		if err != nil {
			t.Fatal(err)
		}
		if len(events.Items) != 1 || events.Items[0].Reason != "Synced" || events.Items[0].Type != corev1.EventTypeNormal ||
			events.Items[0].InvolvedObject.Name != "a" || events.Items[0].Source.Component != k.Controller {
			t.Errorf("Events = %+v, want one Synced of a by %s", events.Items, k.Controller)
		}
	})
}

func TestObjectIsScaled(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		k.Create(t, ns, "a", 1)
		for _, replicas := range []int32{3, 1, 0, 2} {
			kubectl(t, "-n", ns, "scale", k.Singular, "a", fmt.Sprintf("--replicas=%d", replicas))
			k.waitReplicas(t, ns, "a", replicas)
			beReady(t, ns, "a")
			kubectl(t, "-n", ns, "wait", k.Singular+"/a", "--for=condition=Ready", "--timeout=300s")
			clustertest.WaitUntil(t, "the status has the counts", func(ctx context.Context) error {
				foo, err := k.Get(ctx, ns, "a")
				if err != nil {
					return err
				}
				if s := foo.Status; s.Replicas != replicas || s.ReadyReplicas != replicas || s.AvailableReplicas != replicas || s.ObservedGeneration != foo.Generation {
					return fmt.Errorf("status %+v, want %d of each", s, replicas)
				}
				return nil
			})
		}
		if got := kubectl(t, "-n", ns, "get", k.Singular, "a", "-o", `jsonpath={.status.selector}`); got != "app="+k.App+",controller=a" {
			t.Errorf("selector = %q", got)
		}
		table := strings.Split(strings.TrimSpace(kubectl(t, "-n", ns, "get", k.Singular)), "\n")
		if got := strings.Join(strings.Fields(table[0]), " "); got != "NAME DEPLOYMENT DESIRED AVAILABLE READY REASON PODS AGE" {
			t.Errorf("columns = %q", got)
		}
		if got := strings.Join(strings.Fields(table[1])[:6], " "); got != "a a 2 2 True Available" {
			t.Errorf("row = %q", got)
		}
	})
}

func TestDriftOfDeclaredFieldsIsCorrected(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		foo := k.New("a", 2)
		foo.Spec.Image = "nginx:1.29"
		k.Store(t, ns, foo)
		k.waitReplicas(t, ns, "a", 2)

		kubectl(t, "-n", ns, "scale", "deployment", "a", "--replicas=5")
		k.waitReplicas(t, ns, "a", 2)
		kubectl(t, "-n", ns, "label", "deployment", "a", "team=blue")
		kubectl(t, "-n", ns, "set", "resources", "deployment", "a", "--limits=cpu=1")
		kubectl(t, "-n", ns, "set", "image", "deployment/a", "nginx=httpd")
		clustertest.WaitUntil(t, "the image is corrected", func(ctx context.Context) error {
			d, err := shared.Kube().AppsV1().Deployments(ns).Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			container := d.Spec.Template.Spec.Containers[0]
			if container.Image != "nginx:1.29" {
				return fmt.Errorf("image %s", container.Image)
			}
			if d.Labels["team"] != "blue" || container.Resources.Limits.Cpu().String() != "1" {
				return fmt.Errorf("labels %v and resources %v of another writer were changed", d.Labels, container.Resources)
			}
			return nil
		})
	})
}

func TestForeignDeploymentIsLeftAlone(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		kubectl(t, "-n", ns, "create", "deployment", "a", "--image=httpd")
		before := getDeployment(t, ns, "a")
		k.Create(t, ns, "a", 3)
		foo := k.waitCondition(t, ns, "a", "Stalled", "DeploymentConflict")
		if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, `Deployment "a"`) {
			t.Errorf("Ready = %+v, want False and a message that names the Deployment", ready)
		}
		clustertest.WaitUntil(t, "the Event ErrResourceExists exists", func(ctx context.Context) error {
			events, err := shared.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=ErrResourceExists,type=Warning"})
			if err == nil && len(events.Items) != 1 {
				err = fmt.Errorf("%d Events", len(events.Items))
			}
			return err
		})
		if diff := cmp.Diff(before, getDeployment(t, ns, "a")); diff != "" {
			t.Errorf("the foreign Deployment was changed:\n%s", diff)
		}
		// Once it is deleted, its replacement is created at once.
		kubectl(t, "-n", ns, "delete", "deployment", "a")
		k.waitReplicas(t, ns, "a", 3)
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	})
}

func TestInvalidObjectIsRejectedWithHelp(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		for name, test := range map[string]struct {
			spec samplev1alpha1.FooSpec
			want string
		}{
			"no spec":                  {samplev1alpha1.FooSpec{}, "spec: Required value"},
			"no deploymentName":        {samplev1alpha1.FooSpec{Image: "nginx"}, "spec.deploymentName: Required value"},
			"malformed deploymentName": {samplev1alpha1.FooSpec{DeploymentName: "My_App"}, `must be a valid Deployment name, for example "example-` + k.Singular + `"`},
			"negative replicas":        {samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](-1)}, "should be greater than or equal to 0"},
			"image with white space":   {samplev1alpha1.FooSpec{DeploymentName: "a", Image: "nginx latest"}, "must be an image reference without white space"},
		} {
			t.Run(name, func(t *testing.T) {
				object := k.New("a", 1)
				object.Spec = test.spec
				_, err := k.TryStore(t.Context(), ns, object)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error = %v, want one with %q", err, test.want)
				}
			})
		}
	})
}

// TestScaleNeedsReplicas shows what a HorizontalPodAutoscaler that targets a Foo needs.
func TestScaleNeedsReplicas(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		object := k.New("a", 1)
		object.Spec.Replicas = nil
		k.Store(t, ns, object)
		scale := func() error {
			_, err := k.In(ns).Get(t.Context(), "a", metav1.GetOptions{}, "scale")
			return err
		}
		if err := scale(); err == nil || !strings.Contains(err.Error(), "the spec replicas field \".spec.replicas\" does not exist") {
			t.Errorf("error = %v, want one about spec.replicas", err)
		}
		kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=2") // sets it
		if err := scale(); err != nil {
			t.Error(err)
		}
	})
}

func TestUnobservedObjectIsNotReady(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t) // no daemon runs yet
		foo := k.Create(t, ns, "a", 1)
		if foo.Status.ObservedGeneration != -1 || foo.Status.Conditions != nil {
			t.Errorf("status = %+v, want generation -1 and no conditions", foo.Status)
		}
		// The aggregator may be the first to write.
		startDaemon(t, "--controllers="+aggregator)
		k.waitPods(t, ns, "a", "none")
		if got := k.status(t, ns, "a")["observedGeneration"]; got != float64(-1) {
			t.Errorf("observedGeneration = %v with a summary of Pods, want -1", got)
		}
		if diff := cmp.Diff(map[string][]string{aggregator: {"pods"}}, statusFields(t, k.MustGet(t, ns, "a"))); diff != "" {
			t.Errorf("status fields by manager (-want +got):\n%s", diff)
		}
	})
}

func getDeployment(t *testing.T, ns, name string) *appsv1.Deployment {
	t.Helper()
	d, err := shared.Kube().AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// beReady writes the Deployment's status as kube-controller-manager does once all Pods are
// available.
func beReady(t *testing.T, ns, name string) {
	t.Helper()
	d := getDeployment(t, ns, name)
	n := *d.Spec.Replicas
	// Counts of zero are written explicitly, which the Go type would omit.
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`, d.Generation, n, n, n, n)
	if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return shared.Kubectl(t, args...)
}

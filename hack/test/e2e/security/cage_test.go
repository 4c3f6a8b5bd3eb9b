// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

const cage = framework.DaemonName + "-cage"

// byCage matches requests that the cage refused.
func byCage(event auditv1.Event) bool { return strings.Contains(event.ResponseStatus.Message, cage) }

// dryRun is for writes that are allowed, so that all tests begin with the same objects.
var dryRun = []string{metav1.DryRunAll}

// thief writes Deployments with the daemon's token, without effect.
type thief struct {
	deployments appsv1client.DeploymentInterface
	refused     int
}

func (th *thief) create(t *testing.T, d *appsv1.Deployment) error {
	_, err := th.deployments.Create(t.Context(), d, metav1.CreateOptions{DryRun: dryRun})
	return err
}

func (th *thief) patch(t *testing.T, name, patch string) error {
	options := metav1.PatchOptions{DryRun: dryRun}
	_, err := th.deployments.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), options)
	return err
}

// change sends the difference that a function makes to a stored Deployment.
func (th *thief) change(t *testing.T, stored *appsv1.Deployment, change func(*appsv1.Deployment)) error {
	t.Helper()
	changed := stored.DeepCopy()
	change(changed)
	before, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	return th.patch(t, stored.Name, string(patch))
}

func (th *thief) delete(t *testing.T, name string) error {
	return th.deployments.Delete(t.Context(), name, metav1.DeleteOptions{DryRun: dryRun})
}

func (th *thief) wantRefused(t *testing.T, what string, err error) {
	t.Helper()
	th.refused++
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cage) {
		t.Errorf("%s: %v, want the cage to refuse it", what, err)
	}
}

// allowDeletion gives the daemon's account a permission that an older role may still grant. Without
// it, the API server refuses deletions and changes of owners before it asks the cage.
func allowDeletion(t *testing.T, ns string) {
	t.Helper()
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: framework.DaemonName, Name: framework.DaemonName}
	framework.Grant(t, ns, account, rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"delete"},
	})
	// A deletion that RBAC still refuses would be a denial that no test expects.
	deletion := clustertest.Right{Verb: "delete", Group: "apps", Resource: "deployments"}
	deletion.WaitAllowed(t, framework.Kube(), framework.DaemonUser, ns, true)
}

func wantAllowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v, want it to be allowed", what, err)
	}
}

// scaling is what the daemon changes in a Deployment.
const scaling = `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}`

// TestCage writes with the daemon's token what a thief would. What would give the thief more
// power than the daemon needs is refused, and what the daemon itself writes is not.
func TestCage(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.ExpectDenials(t, byCage)
	waitForCage(t)
	foo := framework.Foos.Declare(t, ns, "owner", framework.Naming("owned"))
	owner := *metav1.NewControllerRef(foo, framework.Foos.GroupVersionKind)
	client := clientOf(t, framework.NewToken(t, framework.DaemonName, framework.DaemonName, nil))
	th := &thief{deployments: client.AppsV1().Deployments(ns)}
	allowDeletion(t, ns)

	t.Run("create", func(t *testing.T) {
		wantAllowed(t, "a Deployment of a Foo", th.create(t, newDeployment("new", owner)))
		for what, change := range templates() {
			d := newDeployment("new", owner)
			change(d)
			th.wantRefused(t, "a Deployment with "+what, th.create(t, d))
		}
	})
	t.Run("change", func(t *testing.T) {
		owned := store(t, ns, withSidecar(newDeployment("owned", owner)))
		wantAllowed(t, "replicas and image", th.patch(t, "owned", scaling))
		for what, patch := range harmless {
			wantAllowed(t, what, th.patch(t, "owned", patch))
		}
		for what, change := range templates() {
			th.wantRefused(t, "adding "+what, th.change(t, owned, change))
		}
		another := *owner.DeepCopy()
		another.UID, another.Controller, another.BlockOwnerDeletion = "another", nil, nil
		th.wantRefused(t, "another owner", th.change(t, owned, func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, another)
		}))
		th.wantRefused(t, "the controlling owner", th.change(t, owned, func(d *appsv1.Deployment) {
			d.OwnerReferences[0].UID = "another"
		}))
		th.wantRefused(t, "deletion", th.delete(t, "owned"))
	})
	t.Run("keep power", func(t *testing.T) { testPowerIsKept(t, ns, owner, th) })
	t.Run("others", func(t *testing.T) {
		foreign := store(t, ns, newDeployment("foreign"))
		th.wantRefused(t, "scaling", th.patch(t, "foreign", `{"spec":{"replicas":0}}`))
		th.wantRefused(t, "taking", th.change(t, foreign, func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{owner}
		}))
		th.wantRefused(t, "deletion", th.delete(t, "foreign"))
	})
	if th.refused < 100 {
		t.Errorf("there were %d attempts, want at least 100", th.refused)
	}
}

// testPowerIsKept shows that a Deployment to which somebody gave power is still scaled and
// updated, and that the thief cannot use this power for more than the image of "nginx".
func testPowerIsKept(t *testing.T, ns string, owner metav1.OwnerReference, th *thief) {
	i := 0
	for what, change := range powers() {
		i++
		d := withSidecar(newDeployment(fmt.Sprintf("power-%d", i), owner))
		d.Spec.Replicas = ptr.To[int32](0) // some of the Pods could not be created
		change(d)
		store(t, ns, d)
		wantAllowed(t, "replicas and image of a Deployment with "+what, th.patch(t, d.Name, scaling))
		for more, patch := range besidePower {
			wantAllowed(t, more+" of a Deployment with "+what, th.patch(t, d.Name, patch))
		}
		th.wantRefused(t, "a container in Pods with "+what, th.patch(t, d.Name, harmless["one container more"]))
	}

	strong := withSidecar(newDeployment("strong", owner))
	strong.Spec.Replicas = ptr.To[int32](0)
	pod := &strong.Spec.Template.Spec
	pod.Volumes = []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "token"}}},
		{Name: "scripts", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	sidecar := &pod.Containers[1]
	sidecar.VolumeMounts = []corev1.VolumeMount{
		{Name: "token", MountPath: "/token"},
		{Name: "scripts", MountPath: "/scripts"},
	}
	sidecar.SecurityContext = privileged("").SecurityContext
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = "admin", ptr.To(false)
	store(t, ns, strong)
	wantAllowed(t, "replicas and image", th.patch(t, "strong", scaling))
	for what, pod := range usesOfPower {
		th.wantRefused(t, "using power by "+what, th.patch(t, "strong", `{"spec":{"template":{"spec":`+pod+`}}}`))
	}
}

// store creates a Deployment as a cluster admin.
func store(t *testing.T, ns string, d *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	stored, err := framework.Kube().AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func withSidecar(d *appsv1.Deployment) *appsv1.Deployment {
	pod := &d.Spec.Template.Spec
	pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "envoy"})
	return d
}

// TestCageHasNoWarnings checks what the API server says of the expressions.
func TestCageHasNoWarnings(t *testing.T) {
	for _, name := range []string{cage, cage + "-kube-system"} {
		clustertest.WaitUntil(t, "the expressions of "+name+" are checked", func(ctx context.Context) error {
			policy, err := framework.Kube().AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name,
				metav1.GetOptions{})
			if err != nil {
				return err
			}
			if policy.Status.ObservedGeneration != policy.Generation || policy.Status.TypeChecking == nil {
				return fmt.Errorf("status %+v", policy.Status)
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
			}
			return nil
		})
	}
}

// waitForCage waits until the API server has read the policies, which it does each second.
func waitForCage(t *testing.T) {
	t.Helper()
	thief := clientOf(t, framework.NewToken(t, framework.DaemonName, framework.DaemonName, nil))
	clustertest.WaitUntil(t, "the cage is closed", func(ctx context.Context) error {
		for _, ns := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			_, err := thief.AppsV1().Deployments(ns).Create(ctx, newDeployment("new"), metav1.CreateOptions{DryRun: dryRun})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cage) {
				return fmt.Errorf("creating a Deployment in %s: %w", ns, err)
			}
		}
		return nil
	})
}

func clientOf(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(framework.TokenConfig(token))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

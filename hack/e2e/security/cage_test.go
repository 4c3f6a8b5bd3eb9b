// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

const cage = framework.DaemonName + "-cage"

// dryRun is for writes that are allowed, so that all tests begin with the same objects.
var dryRun = []string{metav1.DryRunAll}

// TestCage writes with the daemon's token what a thief would: each attempt is refused, and
// what the daemon itself writes is not.
func TestCage(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.ExpectDenials(t, func(event auditv1.Event) bool { return strings.Contains(event.ResponseStatus.Message, cage) })
	waitForCage(t)
	foo := framework.Foos.Declare(t, ns, "owner", framework.Naming("owned"))
	owner := *metav1.NewControllerRef(foo, framework.Foos.GroupVersionKind)
	thief := clientOf(t, framework.NewToken(t, framework.DaemonName, framework.DaemonName, nil))
	admin := framework.Kube().AppsV1()

	// What the daemon does.
	if _, err := thief.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("new", owner), metav1.CreateOptions{DryRun: dryRun}); err != nil {
		t.Errorf("creating a Deployment of a Foo: %v", err)
	}
	for _, d := range []*appsv1.Deployment{newDeployment("owned", owner), newDeployment("foreign")} {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "envoy"})
		if _, err := admin.Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(ns, name, patch string) error {
		_, err := thief.AppsV1().Deployments(ns).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
	if err := patch(ns, "owned", `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}`); err != nil {
		t.Errorf("changing replicas and image of a Deployment of a Foo: %v", err)
	}
	if err := thief.AppsV1().Deployments(ns).Delete(t.Context(), "owned", metav1.DeleteOptions{DryRun: dryRun}); err != nil {
		t.Errorf("deleting a Deployment of a Foo: %v", err)
	}

	// What only a thief does.
	attempts := 0
	wantRefused := func(what string, err error) {
		t.Helper()
		attempts++
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cage) {
			t.Errorf("%s: %v, want the cage to refuse it", what, err)
		}
	}
	for what, change := range templates() {
		d := newDeployment("new", owner)
		change(d)
		_, err := thief.AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{DryRun: dryRun})
		wantRefused("creating a Deployment with "+what, err)
	}
	for what, change := range changes {
		wantRefused("changing "+what, patch(ns, "owned", change))
	}
	wantRefused("scaling a Deployment of others", patch(ns, "foreign", `{"spec":{"replicas":0}}`))
	wantRefused("taking a Deployment of others", patch(ns, "foreign", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"Foo","name":"owner","uid":%q,"controller":true}]}}`, owner.APIVersion, owner.UID)))
	wantRefused("deleting a Deployment of others", thief.AppsV1().Deployments(ns).Delete(t.Context(), "foreign", metav1.DeleteOptions{DryRun: dryRun}))
	_, err := thief.AppsV1().Deployments(metav1.NamespaceSystem).Create(t.Context(), newDeployment("new", owner), metav1.CreateOptions{DryRun: dryRun})
	wantRefused("creating a Deployment in kube-system", err)
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "forged"}, InvolvedObject: corev1.ObjectReference{Namespace: metav1.NamespaceSystem}}
	_, err = thief.CoreV1().Events(metav1.NamespaceSystem).Create(t.Context(), event, metav1.CreateOptions{DryRun: dryRun})
	wantRefused("creating an Event in kube-system", err)
	if attempts < 30 {
		t.Errorf("there were %d attempts, want at least 30", attempts)
	}
}

// TestCageHasNoWarnings checks what the API server says of the expressions.
func TestCageHasNoWarnings(t *testing.T) {
	for _, name := range []string{cage, cage + "-kube-system"} {
		clustertest.WaitUntil(t, "the expressions of "+name+" are checked", func(ctx context.Context) error {
			policy, err := framework.Kube().AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
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

// newDeployment returns a Deployment as the daemon creates it.
func newDeployment(name string, owners ...metav1.OwnerReference) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": "owner"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}

// changes are patches of a Deployment of a Foo that the daemon never sends.
var changes = map[string]string{
	"the ServiceAccount":      `{"spec":{"template":{"spec":{"serviceAccountName":"admin"}}}}`,
	"the command":             `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","command":["sh"]}]}}}}`,
	"the privileges":          `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","securityContext":{"privileged":true}}]}}}}`,
	"the image of a sidecar":  `{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"evil"}]}}}}`,
	"containers: one more":    `{"spec":{"template":{"spec":{"containers":[{"name":"evil","image":"evil"}]}}}}`,
	"containers: one less":    `{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","$patch":"delete"}]}}}}`,
	"containers: another one": `{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","$patch":"delete"},{"name":"evil","image":"evil"}]}}}}`,
	"the volumes":             `{"spec":{"template":{"spec":{"volumes":[{"name":"token","secret":{"secretName":"token"}}]}}}}`,
	"the node":                `{"spec":{"template":{"spec":{"nodeName":"control-plane"}}}}`,
	"annotations of Pods":     `{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`,
	"the strategy":            `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`,
	"the pause":               `{"spec":{"paused":true}}`,
	"the labels":              `{"metadata":{"labels":{"a":"b"}}}`,
	"the annotations":         `{"metadata":{"annotations":{"a":"b"}}}`,
	"the finalizers":          `{"metadata":{"finalizers":["example.com/stay"]}}`,
	"the owner":               `{"metadata":{"ownerReferences":null}}`,
}

// templates are changes to a Deployment of a Foo that must not be created.
func templates() map[string]func(*appsv1.Deployment) {
	all := map[string]func(*appsv1.Deployment){
		"no owner":                       func(d *appsv1.Deployment) { d.OwnerReferences = nil },
		"an owner that does not control": func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil },
		"an owner of another kind": func(d *appsv1.Deployment) {
			d.OwnerReferences[0].Kind, d.OwnerReferences[0].BlockOwnerDeletion = "Bar", nil
		},
		"a Foo of another group": func(d *appsv1.Deployment) {
			d.OwnerReferences[0].APIVersion, d.OwnerReferences[0].BlockOwnerDeletion = "example.com/v1", nil
		},
	}
	for what, change := range map[string]func(*corev1.PodSpec){
		"a ServiceAccount":            func(p *corev1.PodSpec) { p.ServiceAccountName = "admin" },
		"a deprecated ServiceAccount": func(p *corev1.PodSpec) { p.DeprecatedServiceAccount = "admin" },
		"the node's network":          func(p *corev1.PodSpec) { p.HostNetwork = true },
		"the node's processes":        func(p *corev1.PodSpec) { p.HostPID = true },
		"the node's IPC":              func(p *corev1.PodSpec) { p.HostIPC = true },
		"a chosen node":               func(p *corev1.PodSpec) { p.NodeName = "control-plane" },
		"a priority of the system":    func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" },
		"sysctls":                     inContext(func(s *corev1.PodSecurityContext) { s.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}} }),
		"SELinux options":             inContext(func(s *corev1.PodSecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} }),
		"no seccomp": inContext(func(s *corev1.PodSecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}),
		"no AppArmor": inContext(func(s *corev1.PodSecurityContext) {
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		}),
		"an init container":    func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{privileged("init")} },
		"a privileged sidecar": func(p *corev1.PodSpec) { p.Containers = append(p.Containers, privileged("sidecar")) },
		"a host port":          inContainer(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} }),
		"a capability": inContainer(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}),
		"the whole /proc": func(p *corev1.PodSpec) {
			p.HostUsers = ptr.To(false) // without it, the API server itself refuses procMount
			p.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
		},
		"the environment of a Secret": inContainer(func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}}}
		}),
		"a variable of a Secret": inContainer(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "token"}}}}
		}),
	} {
		all[what] = func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec) }
	}
	for what, source := range map[string]corev1.VolumeSource{
		"a directory of the node": {HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
		"a Secret":                {Secret: &corev1.SecretVolumeSource{SecretName: "token"}},
		"a token": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}},
		"a volume of a CSI driver": {CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io"}},
		"an NFS volume":            {NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/"}},
	} {
		all[what] = func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: source}}
		}
	}
	return all
}

func inContext(change func(*corev1.PodSecurityContext)) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.SecurityContext = &corev1.PodSecurityContext{}
		change(p.SecurityContext)
	}
}

func inContainer(change func(*corev1.Container)) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) { change(&p.Containers[0]) }
}

func privileged(name string) corev1.Container {
	return corev1.Container{Name: name, Image: "evil", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}
}

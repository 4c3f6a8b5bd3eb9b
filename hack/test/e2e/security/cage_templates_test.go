// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

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

// harmless are patches of a Deployment of a Foo that pass, because an admission policy may have
// made the change.
var harmless = map[string]string{
	"the command":            `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","command":["sh"]}]}}}}`,
	"the image of a sidecar": `{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"mirror/envoy"}]}}}}`,
	"one container more":     `{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"more"}]}}}}`,
	"one container less":     `{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","$patch":"delete"}]}}}}`,
	"an init container":      `{"spec":{"template":{"spec":{"initContainers":[{"name":"init","image":"init"}]}}}}`,
	"the node selector":      `{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`,
	"tolerations":            `{"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`,
	"a harmless volume":      `{"spec":{"template":{"spec":{"volumes":[{"name":"a","emptyDir":{}}]}}}}`,
	"the strategy":           `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`,
	"the pause":              `{"spec":{"paused":true}}`,
	"the labels":             `{"metadata":{"labels":{"a":"b"}}}`,
	"the annotations":        `{"metadata":{"annotations":{"a":"b"}}}`,
	"the finalizers":         `{"metadata":{"finalizers":["example.com/stay"]}}`,
}

// besidePower are patches that pass even if the Pods have power.
var besidePower = map[string]string{
	"labels and annotations of Pods": `{"spec":{"template":{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}}}}}`,
	"imagePullSecrets":               `{"spec":{"template":{"spec":{"imagePullSecrets":[{"name":"mirror"}]}}}}`,
}

// usesOfPower are patches of Pods with a privileged sidecar that mounts a Secret, and with a
// ServiceAccount. Each would give power to code of the thief.
var usesOfPower = map[string]string{
	"a second Secret":            `{"volumes":[{"name":"other","secret":{"secretName":"other"}}]}`,
	"another Secret":             `{"volumes":[{"name":"token","secret":{"secretName":"other"}}]}`,
	"the Secret in nginx":        `{"containers":[{"name":"nginx","volumeMounts":[{"name":"token","mountPath":"/token"}]}]}`,
	"privileges of nginx":        `{"containers":[{"name":"nginx","securityContext":{"privileged":true}}]}`,
	"the image of the sidecar":   `{"containers":[{"name":"sidecar","image":"evil"}]}`,
	"the command of the sidecar": `{"containers":[{"name":"sidecar","command":["sh"]}]}`,
	"the name of the sidecar": `{"containers":[{"name":"sidecar","$patch":"delete"},{"name":"evil","image":"envoy",
		"securityContext":{"privileged":true},"volumeMounts":[{"name":"token","mountPath":"/token"}]}]}`,
	"a second sidecar": `{"containers":[{"name":"evil","image":"evil","securityContext":{"privileged":true}}]}`,
	"an init container": `{"initContainers":[{"name":"init","image":"evil",
		"volumeMounts":[{"name":"scripts","mountPath":"/scripts"}]}]}`,
	"what the sidecar runs": `{"volumes":[{"name":"scripts","emptyDir":null,
		"persistentVolumeClaim":{"claimName":"evil"}}]}`,
	"processes that see each other": `{"shareProcessNamespace":true}`,
	"another ServiceAccount":        `{"serviceAccountName":"other","serviceAccount":"other"}`,
	"the token of its account":      `{"automountServiceAccountToken":true}`,
	"another Node":                  `{"nodeSelector":{"node-role.kubernetes.io/control-plane":""}}`,
	"another user":                  `{"securityContext":{"runAsUser":0}}`,
	"the network of the node":       `{"hostNetwork":true}`,
}

// templates are changes to a Deployment of a Foo that must be neither created nor made.
func templates() map[string]func(*appsv1.Deployment) {
	all := powers()
	maps.Copy(all, map[string]func(*appsv1.Deployment){
		"no owner":                       func(d *appsv1.Deployment) { d.OwnerReferences = nil },
		"an owner that does not control": func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil },
		"an owner of another kind": func(d *appsv1.Deployment) {
			d.OwnerReferences[0].Kind, d.OwnerReferences[0].BlockOwnerDeletion = "Bar", nil
		},
		"a Foo of another group": func(d *appsv1.Deployment) {
			d.OwnerReferences[0].APIVersion, d.OwnerReferences[0].BlockOwnerDeletion = "example.com/v1", nil
		},
		"an earlier Pod template": func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{appsv1.DeprecatedRollbackTo: "1"}
		},
	})
	return all
}

// powers are changes to a Deployment that give its Pods more than the daemon's Pods need.
func powers() map[string]func(*appsv1.Deployment) {
	all := map[string]func(*appsv1.Deployment){
		"no AppArmor, by annotation": func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{
				corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "nginx": "unconfined",
			}
		},
	}
	for what, change := range map[string]func(*corev1.PodSpec){
		"a ServiceAccount":            func(p *corev1.PodSpec) { p.ServiceAccountName = "admin" },
		"a deprecated ServiceAccount": func(p *corev1.PodSpec) { p.DeprecatedServiceAccount = "admin" },
		"the node's network":          func(p *corev1.PodSpec) { p.HostNetwork = true },
		"the node's processes":        func(p *corev1.PodSpec) { p.HostPID = true },
		"the node's IPC":              func(p *corev1.PodSpec) { p.HostIPC = true },
		"the name of a node":          func(p *corev1.PodSpec) { p.NodeName = "control-plane" },
		"a priority of the system":    func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" },
		"sysctls": inContext(func(s *corev1.PodSecurityContext) {
			s.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax",
				Value: "1"}}
		}),
		"SELinux options": inContext(func(s *corev1.PodSecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} }),
		"no seccomp": inContext(func(s *corev1.PodSecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}),
		"no AppArmor": inContext(func(s *corev1.PodSecurityContext) {
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		}),
		"a privileged init container": func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{privileged("init")} },
		"a privileged sidecar":        func(p *corev1.PodSpec) { p.Containers = append(p.Containers, privileged("privileged")) },
		"a host port": inContainer(func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80,
				HostPort: 80}}
		}),
		"a capability": inContainer(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}),
		"the whole /proc": func(p *corev1.PodSpec) {
			p.HostUsers = ptr.To(false) // without it, the API server itself refuses procMount
			p.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
		},
		"the environment of a Secret": inContainer(func(c *corev1.Container) {
			token := corev1.LocalObjectReference{Name: "token"}
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: token}}}
		}),
		"a variable of a Secret": inContainer(func(c *corev1.Container) {
			key := &corev1.SecretKeySelector{Key: "token"}
			key.Name = "token"
			c.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: key}}}
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

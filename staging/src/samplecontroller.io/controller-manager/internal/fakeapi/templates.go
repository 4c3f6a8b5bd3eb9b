// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// setTemplateDefaults sets the defaults of a Pod template.
func setTemplateDefaults(s *corev1.PodSpec) {
	set(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	set(&s.DNSPolicy, corev1.DNSClusterFirst)
	set(&s.RestartPolicy, corev1.RestartPolicyAlways)
	set(&s.SchedulerName, corev1.DefaultSchedulerName)
	setPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	setPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	for i := range s.Volumes {
		setVolumeDefaults(&s.Volumes[i])
	}
	for i := range s.InitContainers {
		setContainerDefaults(&s.InitContainers[i], s.HostNetwork)
	}
	for i := range s.Containers {
		setContainerDefaults(&s.Containers[i], s.HostNetwork)
	}
}

func setVolumeDefaults(v *corev1.Volume) {
	const mode int32 = 0o644
	setItems := func(items []corev1.DownwardAPIVolumeFile) {
		for _, item := range items {
			setFieldDefaults(item.FieldRef)
		}
	}
	switch {
	case v.VolumeSource == corev1.VolumeSource{}:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case v.Secret != nil:
		setPointer(&v.Secret.DefaultMode, mode)
	case v.ConfigMap != nil:
		setPointer(&v.ConfigMap.DefaultMode, mode)
	case v.DownwardAPI != nil:
		setPointer(&v.DownwardAPI.DefaultMode, mode)
		setItems(v.DownwardAPI.Items)
	case v.HostPath != nil:
		setPointer(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Projected != nil:
		setPointer(&v.Projected.DefaultMode, mode)
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				setPointer(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
			if source.DownwardAPI != nil {
				setItems(source.DownwardAPI.Items)
			}
		}
	}
}

func setFieldDefaults(s *corev1.ObjectFieldSelector) {
	if s != nil {
		set(&s.APIVersion, "v1")
	}
}

func setContainerDefaults(c *corev1.Container, hostNetwork bool) {
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	_, tag, tagged := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":") // or a digest after @
	if !tagged || tag == "latest" {
		set(&c.ImagePullPolicy, corev1.PullAlways)
	}
	set(&c.ImagePullPolicy, corev1.PullIfNotPresent)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			set(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom != nil {
			setFieldDefaults(env.ValueFrom.FieldRef)
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			setProbeDefaults(probe)
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				setGetDefaults(handler.HTTPGet)
			}
		}
	}
}

func setProbeDefaults(p *corev1.Probe) {
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	setGetDefaults(p.HTTPGet)
	if p.GRPC != nil {
		setPointer(&p.GRPC.Service, "")
	}
}

func setGetDefaults(g *corev1.HTTPGetAction) {
	if g != nil {
		set(&g.Path, "/")
		set(&g.Scheme, corev1.URISchemeHTTP)
	}
}

// setPodDefaults sets the defaults of a Pod, which has some that its template has not.
func setPodDefaults(p *corev1.Pod) {
	setTemplateDefaults(&p.Spec)
	setPointer(&p.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			if r.Limits != nil {
				requests := maps.Clone(r.Limits)
				maps.Copy(requests, r.Requests)
				r.Requests = requests
			}
		}
	}
}

// setPodAtCreation sets what the admission plugins of a cluster set, too.
func setPodAtCreation(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	for _, c := range p.Spec.Containers {
		if len(c.Resources.Requests) > 0 { // Guaranteed is not distinguished
			p.Status.QOSClass = corev1.PodQOSBurstable
		}
	}
	setPointer(&p.Spec.Priority, 0)
	setPointer(&p.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: ptr.To[int64](300),
		})
	}
}

// setJobLabels sets the selector of a Job, with which it selects its Pods.
func setJobLabels(j *batchv1.Job) {
	if ptr.Deref(j.Spec.ManualSelector, false) {
		return
	}
	for _, o := range []*metav1.ObjectMeta{&j.ObjectMeta, &j.Spec.Template.ObjectMeta} {
		o.Labels = maps.Clone(o.Labels)
		metav1.SetMetaDataLabel(o, batchv1.JobNameLabel, j.Name)
		metav1.SetMetaDataLabel(o, batchv1.ControllerUidLabel, string(j.UID))
		metav1.SetMetaDataLabel(o, "job-name", j.Name)
		metav1.SetMetaDataLabel(o, "controller-uid", string(j.UID))
	}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(j.UID)}}
}

// setAddress sets the IP addresses of a Service.
func setAddress(s *corev1.ServiceSpec, number int64) {
	if s.Type == corev1.ServiceTypeExternalName {
		return
	}
	set(&s.ClusterIP, fmt.Sprintf("10.0.%d.%d", number/250%250, number%250+1))
	s.ClusterIPs = []string{s.ClusterIP}
	s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	if s.ClusterIP != corev1.ClusterIPNone || len(s.Selector) > 0 {
		setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
		return
	}
	s.IPFamilies = append(s.IPFamilies, corev1.IPv6Protocol)
	setPointer(&s.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
}

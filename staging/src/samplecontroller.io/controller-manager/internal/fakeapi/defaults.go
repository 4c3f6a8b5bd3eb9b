// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults sets the defaults of the kinds that are most used. No module that may be imported has the
// functions of the API server.
func setDefaults(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Namespace:
		metav1.SetMetaDataLabel(&o.ObjectMeta, corev1.LabelMetadataName, o.Name)
		set(&o.Status.Phase, corev1.NamespaceActive)
	case *corev1.Secret:
		set(&o.Type, corev1.SecretTypeOpaque)
		for key, value := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
	case *corev1.Service:
		setServiceDefaults(&o.Spec)
	case *corev1.PersistentVolumeClaim:
		setClaimDefaults(o)
	case *corev1.Pod:
		setPodDefaults(o)
	case *appsv1.Deployment:
		setDeploymentDefaults(&o.Spec)
	case *appsv1.ReplicaSet:
		setPointer(&o.Spec.Replicas, 1)
		setTemplateDefaults(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		setStatefulSetDefaults(&o.Spec)
	case *appsv1.DaemonSet:
		setDaemonSetDefaults(&o.Spec)
	case *batchv1.Job:
		setJobDefaults(o)
	case *batchv1.CronJob:
		set(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		setPointer(&o.Spec.Suspend, false)
		setPointer(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		setPointer(&o.Spec.FailedJobsHistoryLimit, 1)
		setTemplateDefaults(&o.Spec.JobTemplate.Spec.Template.Spec)
	case *networkingv1.NetworkPolicy:
		setNetworkPolicyDefaults(&o.Spec)
	case *rbacv1.RoleBinding:
		setBindingDefaults(&o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		setBindingDefaults(&o.RoleRef, o.Subjects)
	}
}

// set sets a field that is empty.
func set[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// setPointer is like set, for a pointer.
func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setServiceDefaults(s *corev1.ServiceSpec) {
	set(&s.SessionAffinity, corev1.ServiceAffinityNone)
	if s.SessionAffinity == corev1.ServiceAffinityClientIP {
		setPointer(&s.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		setPointer(&s.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		setPointer(&s.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	set(&s.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Ports {
		set(&s.Ports[i].Protocol, corev1.ProtocolTCP)
		set(&s.Ports[i].TargetPort, intstr.FromInt32(s.Ports[i].Port))
	}
	if s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer {
		set(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if s.Type != corev1.ServiceTypeExternalName {
		setPointer(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		setPointer(&s.AllocateLoadBalancerNodePorts, true)
	}
}

func setClaimDefaults(c *corev1.PersistentVolumeClaim) {
	setPointer(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	set(&c.Status.Phase, corev1.ClaimPending)
}

func setDeploymentDefaults(s *appsv1.DeploymentSpec) {
	setPointer(&s.Replicas, 1)
	setPointer(&s.RevisionHistoryLimit, 10)
	setPointer(&s.ProgressDeadlineSeconds, 600)
	set(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointer(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointer(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointer(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setTemplateDefaults(&s.Template.Spec)
}

func setStatefulSetDefaults(s *appsv1.StatefulSetSpec) {
	setPointer(&s.Replicas, 1)
	setPointer(&s.RevisionHistoryLimit, 10)
	set(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setPointer(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	set(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	set(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setPointer(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if s.UpdateStrategy.RollingUpdate != nil {
		setPointer(&s.UpdateStrategy.RollingUpdate.Partition, 0)
		setPointer(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	for i := range s.VolumeClaimTemplates {
		claim := &s.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		setClaimDefaults(claim)
	}
	setTemplateDefaults(&s.Template.Spec)
}

func setDaemonSetDefaults(s *appsv1.DaemonSetSpec) {
	setPointer(&s.RevisionHistoryLimit, 10)
	set(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setPointer(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setPointer(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointer(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setTemplateDefaults(&s.Template.Spec)
}

func setJobDefaults(j *batchv1.Job) {
	if j.Spec.Parallelism == nil {
		setPointer(&j.Spec.Completions, 1)
	}
	setPointer(&j.Spec.Parallelism, 1)
	setPointer(&j.Spec.BackoffLimit, 6)
	setPointer(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	setPointer(&j.Spec.Suspend, false)
	setPointer(&j.Spec.ManualSelector, false)
	if j.Spec.PodFailurePolicy == nil {
		setPointer(&j.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	} else {
		setPointer(&j.Spec.PodReplacementPolicy, batchv1.Failed)
	}
	if len(j.Labels) == 0 {
		j.Labels = j.Spec.Template.Labels
	}
	setTemplateDefaults(&j.Spec.Template.Spec)
}

func setNetworkPolicyDefaults(s *networkingv1.NetworkPolicySpec) {
	setPorts := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			setPointer(&ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range s.Ingress {
		setPorts(rule.Ports)
	}
	for _, rule := range s.Egress {
		setPorts(rule.Ports)
	}
	if len(s.PolicyTypes) > 0 {
		return
	}
	s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(s.Egress) > 0 {
		s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
}

func setBindingDefaults(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	set(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].Kind != rbacv1.ServiceAccountKind {
			set(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// setAtCreation sets the fields of a new object that depend on others, on the UID or on the cluster.
func setAtCreation(object runtime.Object, number int64) {
	switch o := object.(type) {
	case *corev1.Namespace:
		o.Spec.Finalizers = append(o.Spec.Finalizers, corev1.FinalizerKubernetes)
	case *corev1.PersistentVolumeClaim:
		o.Finalizers = append(o.Finalizers, claimFinalizer)
	case *corev1.Service:
		setAddress(&o.Spec, number)
	case *corev1.Pod:
		setPodAtCreation(o)
	case *appsv1.DaemonSet:
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, appsv1.DeprecatedTemplateGeneration, "1")
	case *batchv1.Job:
		setJobLabels(o)
	}
}

// claimFinalizer keeps a claim until no Pod uses it.
const claimFinalizer = "kubernetes.io/pvc-protection"

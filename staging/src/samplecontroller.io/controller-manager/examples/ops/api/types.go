// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api has the API types of the example, and what its controllers read of a Job.
package api

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "ops.example.org", Version: "v1"}

// AddToScheme adds the types of the example to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Backup{}, &BackupList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

// Backup copies a PersistentVolumeClaim on a schedule to a vault.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   BackupSpec   `json:"spec,omitzero"`
	Status BackupStatus `json:"status,omitzero"`
}

// BackupSpec is what to copy, when, and how many copies to keep.
type BackupSpec struct {
	Source    string `json:"source"`
	Schedule  string `json:"schedule"`
	Retention int32  `json:"retention"`
}

// BackupStatus is what the controller has done.
type BackupStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	VaultGeneration    int64              `json:"vaultGeneration,omitempty"`
	LastScheduleTime   *metav1.Time       `json:"lastScheduleTime,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// BackupList is a list of Backups.
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Backup `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (b *Backup) DeepCopyObject() runtime.Object { return b.DeepCopy() }

// DeepCopy returns a copy.
func (b *Backup) DeepCopy() *Backup {
	out := *b
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.LastScheduleTime = b.Status.LastScheduleTime.DeepCopy()
	out.Status.Conditions = nil
	for i := range b.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *b.Status.Conditions[i].DeepCopy())
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *BackupList) DeepCopyObject() runtime.Object {
	out := BackupList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return &out
}

// Finished returns when a Job ended, nil if it has not.
func Finished(job *batchv1.Job) *metav1.Time {
	for _, c := range job.Status.Conditions {
		if c.Status == "True" && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &c.LastTransitionTime
		}
	}
	return nil
}

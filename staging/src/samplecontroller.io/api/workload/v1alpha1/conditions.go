// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. They follow the kstatus convention
// (sigs.k8s.io/cli-utils/pkg/kstatus): Ready is always present and says whether
// all is as declared. Reconciling or Stalled is present, and True, while it is not.
const (
	// ConditionReady is True if and only if status.observedGeneration equals
	// metadata.generation, the Deployment is owned by the object and observed in
	// its current generation, its updated, total and available replicas all
	// equal the replicas wanted, no Deployment of a former spec.deploymentName is
	// left, and the object is not being deleted.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the object is on its way to Ready and
	// nothing that a user must fix is in the way.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the object cannot become Ready until
	// somebody changes something: the message says what.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions. Ready, while it is False, has the reason and the
// message of the condition that is True.
const (
	// ReasonAvailable: every wanted replica is up to date and available.
	ReasonAvailable = "Available"
	// ReasonProgressing: the Deployment is being created, rolled out or scaled.
	ReasonProgressing = "Progressing"
	// ReasonReplicasContested: another writer sets the replicas of the Deployment
	// again and again; the message names its field manager.
	ReasonReplicasContested = "ReplicasContested"
	// ReasonImageContested: another writer sets the image of the Deployment again
	// and again; the message names its field manager.
	ReasonImageContested = "ImageContested"
	// ReasonWaitingForDeletion: a Deployment of the wanted name is being
	// deleted, or belongs to an earlier object of the same kind and name; it is
	// created again once that one is gone. Or the Deployment of a former
	// spec.deploymentName is not gone yet. Or the whole namespace is being deleted.
	ReasonWaitingForDeletion = "WaitingForDeletion"
	// ReasonTerminating: the object is being deleted, and finalizers hold it. The
	// status still reports its Deployment, which is not written any more.
	ReasonTerminating = "Terminating"
	// ReasonDeploymentConflict: a Deployment of the wanted name exists and is
	// not owned by the object. It is never touched.
	ReasonDeploymentConflict = "DeploymentConflict"
	// ReasonInvalidSpec: the spec cannot be carried out as it is written.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonDeploymentPaused: the Deployment has spec.paused, so its rollout does not
	// go on until somebody resumes it.
	ReasonDeploymentPaused = "DeploymentPaused"
	// ReasonContainerMissing: the spec declares an image, and the Deployment has no
	// container of the name that it is for. None is added.
	ReasonContainerMissing = "ContainerMissing"
	// ReasonWriteDenied: the API server refuses to create or change the
	// Deployment, for example for a quota or an admission policy.
	ReasonWriteDenied = "WriteDenied"
	// ReasonRewrittenByAdmission: a webhook or a policy changes what the spec declares
	// when the Deployment is written; the message has both values.
	ReasonRewrittenByAdmission = "RewrittenByAdmission"
	// ReasonProgressDeadlineExceeded: the Deployment reports that its rollout
	// has made no progress within spec.progressDeadlineSeconds.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

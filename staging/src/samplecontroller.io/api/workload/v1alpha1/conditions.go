// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. They follow the kstatus convention
// (sigs.k8s.io/cli-utils/pkg/kstatus). Ready is always present. While Ready is False,
// either Reconciling or Stalled is present and True. Paused is independent of these.
const (
	// ConditionReady speaks of status.observedGeneration. After a change of the spec, it
	// describes the former generation until the controller has observed the new one:
	// compare observedGeneration with metadata.generation. It is True if and only if, for
	// that generation, all of these hold:
	//
	//   - the object owns the Deployment, and the deployment controller has observed
	//     the Deployment's current generation;
	//   - its updated, total and available replicas all equal the desired replicas;
	//   - nobody keeps changing what the spec declares, and no write keeps failing;
	//   - the object is not being deleted.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the object is progressing toward Ready and
	// no user action is needed.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the object cannot become Ready without a change
	// by somebody else. The message says which change.
	ConditionStalled = "Stalled"
	// ConditionPaused is True while the object is paused: by an annotation of the object or of
	// its namespace, or by a setting of the controller. Nothing is written for the object, and the
	// other conditions are from before. The message says until when, and how to resume.
	ConditionPaused = "Paused"
)

// Reasons of the conditions. While Ready is False, it has the reason and the message
// of the condition that is True.
const (
	// ReasonAvailable: all desired replicas are up to date and available.
	ReasonAvailable = "Available"
	// ReasonProgressing: the Deployment is being created, rolled out or scaled.
	ReasonProgressing = "Progressing"
	// ReasonReplicasContested: another writer repeatedly changes the replicas of the
	// Deployment, three times or more within an hour. The message names its field manager.
	ReasonReplicasContested = "ReplicasContested"
	// ReasonImageContested: another writer repeatedly changes the image of the
	// Deployment, three times or more within an hour. The message names its field manager.
	ReasonImageContested = "ImageContested"
	// ReasonWaitingForDeletion: the Deployment is being deleted, or belongs to an
	// earlier object of the same kind and name, and is created again once it is gone.
	// Or the whole namespace is being deleted.
	ReasonWaitingForDeletion = "WaitingForDeletion"
	// ReasonDeletionBlocked: as WaitingForDeletion, but for more than a minute: a
	// finalizer holds the Deployment, or the garbage collector missed it.
	ReasonDeletionBlocked = "DeletionBlocked"
	// ReasonTerminating: the object is being deleted, and finalizers hold it. The
	// status still reports the Deployment, but the Deployment is no longer written.
	ReasonTerminating = "Terminating"
	// ReasonDeploymentConflict: a Deployment with the name in spec.deploymentName
	// exists and is not owned by the object. It is never touched.
	ReasonDeploymentConflict = "DeploymentConflict"
	// ReasonInvalidSpec: the spec is invalid.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonDeploymentPaused: the Deployment has spec.paused set, so its rollout does
	// not continue until somebody resumes it.
	ReasonDeploymentPaused = "DeploymentPaused"
	// ReasonContainerMissing: the spec declares an image, but the Deployment has no
	// container "nginx" to set it on. No container is added.
	ReasonContainerMissing = "ContainerMissing"
	// ReasonWriteDenied: the API server refuses to create or change the Deployment,
	// for example because of a quota or an admission policy.
	ReasonWriteDenied = "WriteDenied"
	// ReasonWriteFailing: creating or changing the Deployment has failed several times
	// for ten seconds or more, with an error that may pass, such as a timeout.
	ReasonWriteFailing = "WriteFailing"
	// ReasonWriteFailed: as WriteFailing, but for a minute or more.
	ReasonWriteFailed = "WriteFailed"
	// ReasonRewrittenByAdmission: a webhook or an admission policy replaces a value
	// that the spec declares when the Deployment is written. The message has both values.
	ReasonRewrittenByAdmission = "RewrittenByAdmission"
	// ReasonProgressDeadlineExceeded: the Deployment reports that its rollout made no
	// progress within its spec.progressDeadlineSeconds.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonReplicasUnavailable: the rollout is complete, but replicas have been
	// unavailable for the Deployment's spec.progressDeadlineSeconds, without a rise of
	// their number. Or the ReplicaSet of the Deployment could not be created for that
	// long. The Deployment itself does not report either.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
)

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestProblem(t *testing.T) {
	crashing := waiting("CrashLoopBackOff", "back-off 10s restarting failed container")
	all := func(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			for _, change := range changes {
				change(pod)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   Problem
	}{
		"none":                                {func(*corev1.Pod) {}, Problem{}},
		"merely not ready":                    {withConditions(), Problem{}},
		"pending, not yet scheduled":          {all(onNode(""), inPhase(corev1.PodPending), withConditions()), Problem{}},
		"is being created":                    {withContainers(waiting("ContainerCreating", "")), Problem{}},
		"waits for its init containers":       {withContainers(waiting("PodInitializing", "")), Problem{}},
		"waits without a reason":              {withContainers(waiting("", "soon")), Problem{}},
		"succeeded":                           {all(inPhase(corev1.PodSucceeded), withContainers(terminated(0, "Completed", ""))), Problem{}},
		"succeeded, with a waiting container": {all(inPhase(corev1.PodSucceeded), withContainers(crashing)), Problem{}},

		"unschedulable":          {unplaced("Unschedulable", "0/3 nodes are available"), Problem{Unplaced, "Unschedulable", "0/3 nodes are available"}},
		"gated":                  {unplaced("SchedulingGated", "Scheduling is blocked"), Problem{Unplaced, "SchedulingGated", "Scheduling is blocked"}},
		"unplaced for no reason": {unplaced("", ""), Problem{Unplaced, "Unschedulable", ""}},
		"another False condition": {withConditions(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}),
			Problem{}},

		"unknown":                {inPhase(corev1.PodUnknown), Problem{Unknown, "Unknown", ""}},
		"unknown, with a reason": {all(inPhase(corev1.PodUnknown), saying("NodeLost", "node is unresponsive")), Problem{Unknown, "NodeLost", "node is unresponsive"}},
		"in no phase":            {inPhase(""), Problem{}}, // the kubelet has not seen it yet

		"crashes":                  {withContainers(crashing), Problem{Waiting, "CrashLoopBackOff", "back-off 10s restarting failed container"}},
		"second container crashes": {withContainers(restarted(0), crashing), Problem{Waiting, "CrashLoopBackOff", "back-off 10s restarting failed container"}},
		"image of an init container": {
			all(withInitContainers(waiting("ImagePullBackOff", "no such image")), withContainers(waiting("PodInitializing", ""))),
			Problem{Waiting, "ImagePullBackOff", "no such image"},
		},
		"init containers come first": {
			all(withInitContainers(waiting("ErrImageNeverPull", "")), withContainers(crashing)),
			Problem{Waiting, "ErrImageNeverPull", ""},
		},
		"waiting is worse than unknown": {all(inPhase(corev1.PodUnknown), withContainers(crashing)),
			Problem{Waiting, crashing.State.Waiting.Reason, crashing.State.Waiting.Message}},
		"waiting is worse than unplaced": {all(unplaced("Unschedulable", ""), withContainers(crashing)),
			Problem{Waiting, crashing.State.Waiting.Reason, crashing.State.Waiting.Message}},

		"evicted": {all(inPhase(corev1.PodFailed), saying("Evicted", "low on memory"), withContainers(terminated(137, "Error", "killed"))),
			Problem{Failed, "Evicted", "low on memory"}},
		"failed without a reason":    {all(inPhase(corev1.PodFailed), withContainers()), Problem{Failed, "Failed", ""}},
		"failed with only a message": {all(inPhase(corev1.PodFailed), saying("", "gone"), withContainers()), Problem{Failed, "Failed", "gone"}},
		"exited": {all(inPhase(corev1.PodFailed), withContainers(terminated(3, "", ""))),
			Problem{Failed, "Error", `container "ended" exited with code 3`}},
		"out of memory":         {all(inPhase(corev1.PodFailed), withContainers(terminated(137, "OOMKilled", ""))), Problem{Failed, "OOMKilled", `container "ended" exited with code 137`}},
		"exited with a message": {all(inPhase(corev1.PodFailed), withContainers(terminated(1, "Error", "no configuration"))), Problem{Failed, "Error", "no configuration"}},
		"the first failed container": {
			all(inPhase(corev1.PodFailed), withContainers(terminated(0, "Completed", "fine"), terminated(1, "First", ""), terminated(2, "Second", ""))),
			Problem{Failed, "First", `container "ended" exited with code 1`},
		},
		"failed init container": {
			all(inPhase(corev1.PodFailed), withInitContainers(terminated(1, "Init", "")), withContainers(waiting("PodInitializing", ""))),
			Problem{Failed, "Init", `container "ended" exited with code 1`},
		},
		"failed, with a waiting container": {all(inPhase(corev1.PodFailed), withContainers(crashing)), Problem{Failed, "Failed", ""}},

		"crashing, in deletion":      {all(withContainers(crashing), deleted), Problem{}},
		"failed, in deletion":        {all(inPhase(corev1.PodFailed), deleted), Problem{}},
		"unschedulable, in deletion": {all(unplaced("Unschedulable", ""), deleted), Problem{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := factsOf(newPod(test.change)).Problem(); got != test.want {
				t.Errorf("Problem() = %+v, want %+v", got, test.want)
			}
		})
	}
}

// The kubelet alternates between the two states with each attempt.
func TestFailedPullIsOneProblem(t *testing.T) {
	long := strings.Repeat("m", 2*maxMessage)
	for name, test := range map[string]struct{ reason, cause, want string }{
		"pull error":        {"ErrImagePull", `failed to resolve "nginx:none": not found`, `ErrImagePull: failed to resolve "nginx:none": not found`},
		"registry is down":  {"RegistryUnavailable", "dial tcp", "RegistryUnavailable: dial tcp"},
		"bad signature":     {"SignatureValidationFailed", "no key", "SignatureValidationFailed: no key"},
		"long error is cut": {"ErrImagePull", long, "ErrImagePull: " + long[:maxMessage-3-len("ErrImagePull: ")] + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			want := Problem{Waiting, "ImagePullBackOff", test.want}
			for _, container := range []corev1.ContainerStatus{
				waiting(test.reason, test.cause),
				waiting("ImagePullBackOff", `Back-off pulling image "nginx:none": `+test.reason+": "+test.cause),
			} {
				if got := factsOf(newPod(withContainers(container))).Problem(); got != want {
					t.Errorf("Problem() while waiting for %s = %+v, want %+v", container.State.Waiting.Reason, got, want)
				}
			}
		})
	}
	for _, message := range []string{`Back-off pulling image "nginx:none"`, `another "message": x`} {
		want := Problem{Waiting, "ImagePullBackOff", message}
		if got := factsOf(newPod(withContainers(waiting(want.Reason, message)))).Problem(); got != want {
			t.Errorf("Problem() = %+v, want %+v", got, want)
		}
	}
}

func TestFailedPodsAreLeastSevere(t *testing.T) {
	for _, other := range []Severity{Unplaced, Unknown, Waiting} {
		if Failed >= other || Failed == None {
			t.Errorf("severity of failed Pods is %d, want it above None and below %d", Failed, other)
		}
	}
}

func TestProblemIsCutToStatusLimits(t *testing.T) {
	for name, test := range map[string]struct{ reason, message, wantReason, wantMessage string }{
		"fits": {strings.Repeat("r", 64), strings.Repeat("m", 256), strings.Repeat("r", 64), strings.Repeat("m", 256)},
		"too long": {strings.Repeat("r", 65), strings.Repeat("m", 257), strings.Repeat("r", 61) + "...",
			strings.Repeat("m", 253) + "..."},
		"counts characters":  {"R", strings.Repeat("é", 256), "R", strings.Repeat("é", 256)},
		"cuts characters":    {"R", strings.Repeat("é", 257), "R", strings.Repeat("é", 253) + "..."},
		"invalid UTF-8":      {"R\xff", "m\xe2\x82m", "R", "mm"},
		"invalid, then fits": {"R", strings.Repeat("m", 256) + "\xff", "R", strings.Repeat("m", 256)},
	} {
		t.Run(name, func(t *testing.T) {
			got := factsOf(newPod(withContainers(waiting(test.reason, test.message)))).Problem()
			if want := (Problem{Waiting, test.wantReason, test.wantMessage}); got != want {
				t.Errorf("Problem() = %+v, want %+v", got, want)
			}
		})
	}
}

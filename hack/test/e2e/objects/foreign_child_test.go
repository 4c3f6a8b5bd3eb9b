// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestForeignChildIsLeftAlone gives an object "a" control over Deployment "other", which was not
// made for it and has another selector.
func TestForeignChildIsLeftAlone(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"by another operator": childOfAnotherOperator,
		"by a typo":           childByTypo,
	})
}

func childOfAnotherOperator(t *testing.T, k framework.Kind, ns string) {
	placeOther(t, ns)
	object := k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "one", Replicas: ptr.To[int32](2)})
	k.WaitReady(t, ns, "a", 2)
	framework.EditDeployment(t, ns, "other", fmt.Sprintf(
		`patch DEPLOYMENT -p={"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":"a","uid":%q,"controller":true}]}}`,
		k.GroupVersion(), k.Kind, object.UID))
	other := framework.TakeSnapshot(t, ns)
	k.WaitIdle(t)
	wantKept(t, ns, other)

	rename(t, k, ns, "two")
	waitRenamed(t, k, ns, "two", 2, "one", "")
	k.WaitIdle(t)
	wantKept(t, ns, other)
	followAdvice(t, k, ns, "a")
	waitDeployments(t, ns, "other", "two")
	waitMessage(t, k, ns, "a", `Deployment "two" has 2 of 2 replicas available`)
	wantOtherKept(t, k, ns, other)
}

// childByTypo runs the command that the status of an object with a taken name suggests, with the
// name of another Deployment.
func childByTypo(t *testing.T, k framework.Kind, ns string) {
	placeForeign(t, k, ns)
	placeOther(t, ns)
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: ptr.To[int32](2)})
	k.WaitStalled(t, ns, "a")
	runInShell(t, strings.Replace(advice(t, k, ns, "a"), " deployment web ", " deployment other ", 1))
	wantOwned(t, k, ns, "a", "other")
	other := framework.TakeSnapshot(t, ns)
	k.WaitIdle(t)
	framework.WantSameSnapshot(t, "giving a foreign Deployment to the object", ns, other)

	deleteWeb(t, k, ns)
	k.WaitReady(t, ns, "a", 2)
	waitMessage(t, k, ns, "a", `Deployment "web" has 2 of 2 replicas available`)
	wantOtherKept(t, k, ns, other)
}

// placeOther creates Deployment "other" with three Pods.
func placeOther(t *testing.T, ns string) {
	t.Helper()
	framework.Kubectl(t, "-n", ns, "create", "deployment", "other", "--image=nginx", "--replicas=3")
	framework.Kubectl(t, "-n", ns, "rollout", "status", "deployment/other", "--timeout=300s")
}

// wantOtherKept checks that the object reports only its own two Pods, and that Deployment "other"
// and its Pods have not changed.
func wantOtherKept(t *testing.T, k framework.Kind, ns string, before framework.Snapshot) {
	t.Helper()
	k.WaitPodsReported(t, ns, "a", 2)
	k.WaitIdle(t)
	onlyOther(before.Deployments)
	onlyOther(before.ReplicaSets)
	onlyOther(before.Pods)
	wantKept(t, ns, before)
}

// onlyOther removes what does not belong to Deployment "other".
func onlyOther[V any](all map[string]V) {
	maps.DeleteFunc(all, func(name string, _ V) bool { return !strings.HasPrefix(name, "other") })
}

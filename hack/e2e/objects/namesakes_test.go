// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestNamesakes has a Foo and an Icecream of one name side by side, each with
// an autoscaler of its own, which want different things.
func TestNamesakes(t *testing.T) {
	framework.FreeLease(t)
	startAutoscaler(t)
	r := framework.StartReplica(t).Ready()
	ns := framework.NewNamespace(t)
	statuses := map[framework.Kind]*framework.History[*samplev1alpha1.Foo]{}
	most := map[framework.Kind]int32{}
	for _, k := range framework.Kinds {
		statuses[k] = framework.Record[*samplev1alpha1.Foo](t, k.Watch(ns))
		k.Declare(t, ns, "x", samplev1alpha1.FooSpec{DeploymentName: "x-" + k.Singular, Replicas: ptr.To[int32](1)})
	}
	autoscalers := framework.Record[*autoscalingv2.HorizontalPodAutoscaler](t, framework.Kube().AutoscalingV2().HorizontalPodAutoscalers(ns).Watch)
	for _, k := range framework.Kinds {
		k.WaitReady(t, ns, "x", 1)
		autoscale(t, ns, "x-"+k.Singular, k.GroupVersionKind, "x", 1, 1)
	}
	rounds := []map[framework.Kind]int32{{framework.Foos: 2, framework.Icecreams: 3}, {framework.Foos: 3, framework.Icecreams: 1}, {framework.Foos: 1, framework.Icecreams: 4}}[:framework.Count(3, 1)]
	for _, wanted := range rounds {
		for k, replicas := range wanted {
			bound(t, ns, "x-"+k.Singular, replicas, replicas)
			most[k] = max(most[k], replicas)
		}
		for k, replicas := range wanted {
			k.WaitReady(t, ns, "x", int(replicas))
			k.WantPods(t, ns, "x", int(replicas))
			k.WaitPodsReported(t, ns, "x", int(replicas))
			waitContent(t, ns, "x-"+k.Singular, replicas)
		}
	}

	for _, k := range framework.Kinds {
		waitScalingActive(t, autoscalers, "x-"+k.Singular, "FailedGetResourceMetric") // it has looked, and there are no metrics
		wantCorrections(t, k, ns, len(rounds))
		wantOwned(t, k, ns, "x", "x-"+k.Singular)
		for _, c := range statuses[k].Changes() {
			s := c.Object.Status
			if pods := ptr.Deref(s.Pods, workloadv1alpha1.PodSummary{}).Total; s.Replicas > most[k] || s.ReadyReplicas > most[k] || pods > most[k] {
				t.Errorf("%s x said that there are %d replicas, %d of them ready, and %d Pods, and never wanted more than %d", k.Kind, s.Replicas, s.ReadyReplicas, pods, most[k])
			}
		}
	}
	if mine, others := framework.Foos.MustGet(t, ns, "x").Status.Selector, framework.Icecreams.MustGet(t, ns, "x").Status.Selector; mine == others {
		t.Errorf("both select %q", mine)
	}
	for _, c := range autoscalers.Changes() {
		if reason := scalingActive(c.Object); reason == ambiguous {
			t.Errorf("autoscaler %s says %s: %+v", c.Object.Name, reason, c.Object.Status.Conditions)
		}
	}

	// That an autoscaler says so where selectors do meet, a third one shows.
	autoscale(t, ns, "intruder", deploymentKind, "x-foo", 1, 2)
	waitScalingActive(t, autoscalers, "intruder", ambiguous)
	r.Stop()
	framework.WantNoDenials(t)
}

// ambiguous is what an autoscaler says whose Pods another one selects, too.
const ambiguous = "AmbiguousSelector"

// scalingActive returns the reason of an autoscaler's condition ScalingActive.
func scalingActive(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive {
			return c.Reason
		}
	}
	return ""
}

// waitScalingActive waits until an autoscaler was told to have a reason for its
// condition ScalingActive.
func waitScalingActive(t *testing.T, autoscalers *framework.History[*autoscalingv2.HorizontalPodAutoscaler], name, reason string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("autoscaler %s says %s", name, reason), func(context.Context) error {
		last := errors.New("it is not there")
		for _, c := range autoscalers.Changes() {
			if c.Object.Name != name {
				continue
			}
			if scalingActive(c.Object) == reason {
				return nil
			}
			last = fmt.Errorf("status %+v", c.Object.Status)
		}
		return last
	})
}

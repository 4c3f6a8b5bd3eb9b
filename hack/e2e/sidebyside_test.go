// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// TestNamesakesDoNotMeet has a Foo and an Icecream of one name side by side, each with
// an autoscaler of its own, which want different things.
func TestNamesakesDoNotMeet(t *testing.T) {
	freeLease(t)
	startAutoscaler(t)
	r := startReplica(t).ready()
	ns := newNamespace(t)
	statuses := map[kind]*history[*samplev1alpha1.Foo]{}
	most := map[kind]int32{}
	for _, k := range kinds {
		statuses[k] = record[*samplev1alpha1.Foo](t, k.watch(ns))
		k.declare(t, ns, "x", samplev1alpha1.FooSpec{DeploymentName: "x-" + k.singular, Replicas: ptr.To[int32](1)})
	}
	autoscalers := record[*autoscalingv2.HorizontalPodAutoscaler](t, kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Watch)
	for _, k := range kinds {
		k.waitReady(t, ns, "x", 1)
		autoscale(t, ns, "x-"+k.singular, k.GroupVersionKind, "x", 1, 1)
	}
	for _, wanted := range []map[kind]int32{{foos: 2, icecreams: 3}, {foos: 3, icecreams: 1}, {foos: 1, icecreams: 4}} {
		for k, replicas := range wanted {
			bound(t, ns, "x-"+k.singular, replicas, replicas)
			most[k] = max(most[k], replicas)
		}
		for k, replicas := range wanted {
			k.waitReady(t, ns, "x", int(replicas))
			k.wantPods(t, ns, "x", int(replicas))
			k.waitTold(t, ns, "x", int(replicas))
			waitContent(t, ns, "x-"+k.singular, replicas)
		}
	}

	for _, k := range kinds {
		waitScalingActive(t, autoscalers, "x-"+k.singular, "FailedGetResourceMetric") // it has looked, and there are no metrics
		k.wantCorrections(t, ns, 3)
		k.wantOwned(t, ns, "x", "x-"+k.singular)
		for _, c := range statuses[k].told() {
			s := c.object.Status
			if pods := ptr.Deref(s.Pods, workloadv1alpha1.PodSummary{}).Total; s.Replicas > most[k] || s.ReadyReplicas > most[k] || pods > most[k] {
				t.Errorf("%s x said that there are %d replicas, %d of them ready, and %d Pods, and never wanted more than %d", k.Kind, s.Replicas, s.ReadyReplicas, pods, most[k])
			}
		}
	}
	if mine, others := foos.mustGet(t, ns, "x").Status.Selector, icecreams.mustGet(t, ns, "x").Status.Selector; mine == others {
		t.Errorf("both select %q", mine)
	}
	for _, c := range autoscalers.told() {
		if reason := scalingActive(c.object); reason == ambiguous {
			t.Errorf("autoscaler %s says %s: %+v", c.object.Name, reason, c.object.Status.Conditions)
		}
	}

	// That an autoscaler says so where selectors do meet, a third one shows.
	autoscale(t, ns, "intruder", deploymentKind, "x-foo", 1, 2)
	waitScalingActive(t, autoscalers, "intruder", ambiguous)
	r.stop()
	wantNoDenials(t)
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
func waitScalingActive(t *testing.T, autoscalers *history[*autoscalingv2.HorizontalPodAutoscaler], name, reason string) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("autoscaler %s says %s", name, reason), func(context.Context) error {
		last := errors.New("it is not there")
		for _, c := range autoscalers.told() {
			if c.object.Name != name {
				continue
			}
			if scalingActive(c.object) == reason {
				return nil
			}
			last = fmt.Errorf("status %+v", c.object.Status)
		}
		return last
	})
}

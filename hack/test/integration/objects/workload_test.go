// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestObjectIsScaled(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		framework.StartDaemon(t)
		k.Create(t, ns, "a", 1)
		for _, replicas := range []int32{3, 1, 0, 2} {
			framework.Kubectl(t, "-n", ns, "scale", k.Singular, "a", fmt.Sprintf("--replicas=%d", replicas))
			k.WaitReplicas(t, ns, "a", replicas)
			framework.BeReady(t, ns, "a")
			framework.Kubectl(t, "-n", ns, "wait", k.Singular+"/a", "--for=condition=Ready", "--timeout=300s")
			clustertest.WaitUntil(t, "the status has the counts", func(ctx context.Context) error {
				foo, err := k.Get(ctx, ns, "a")
				if err != nil {
					return err
				}
				if s := foo.Status; s.Replicas != replicas || s.ReadyReplicas != replicas || s.AvailableReplicas != replicas ||
					s.ObservedGeneration != foo.Generation {
					return fmt.Errorf("status %+v, want %d of each", s, replicas)
				}
				return nil
			})
		}
		if got := framework.Kubectl(t, "-n", ns, "get", k.Singular, "a", "-o", `jsonpath={.status.selector}`); got != "app="+k.App+",controller=a" {
			t.Errorf("selector = %q", got)
		}
		table := strings.Split(strings.TrimSpace(framework.Kubectl(t, "-n", ns, "get", k.Singular)), "\n")
		if got := strings.Join(strings.Fields(table[0]), " "); got != "NAME DEPLOYMENT DESIRED AVAILABLE READY REASON PODS AGE" {
			t.Errorf("columns = %q", got)
		}
		if got := strings.Join(strings.Fields(table[1])[:6], " "); got != "a a 2 2 True Available" {
			t.Errorf("row = %q", got)
		}
	})
}

// TestScaleNeedsReplicas shows what a HorizontalPodAutoscaler that targets a Foo needs.
func TestScaleNeedsReplicas(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		object := k.New("a", 1)
		object.Spec.Replicas = nil
		k.Store(t, ns, object)
		scale := func() error {
			_, err := k.In(ns).Get(t.Context(), "a", metav1.GetOptions{}, "scale")
			return err
		}
		if err := scale(); err == nil || !strings.Contains(err.Error(), "the spec replicas field \".spec.replicas\" does not exist") {
			t.Errorf("error = %v, want one about spec.replicas", err)
		}
		framework.Kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=2") // sets it
		if err := scale(); err != nil {
			t.Error(err)
		}
	})
}

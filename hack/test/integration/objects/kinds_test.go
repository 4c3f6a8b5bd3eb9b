// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// client returns a REST client, which neither validates nor converts objects.
func client(k framework.Kind) restclient.Interface {
	if k == framework.Icecreams {
		return framework.Sample().IcecreamV1alpha1().RESTClient()
	}
	return framework.Sample().SamplecontrollerV1alpha1().RESTClient()
}

// wantEvents compares types and reasons of the Events about the objects of a namespace.
// None may have happened twice.
func wantEvents(t *testing.T, k framework.Kind, ns string, want ...string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("the Events are %q", want), func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind})
		if err != nil {
			return err
		}
		var got []string
		for _, event := range events.Items {
			if event.Count != 1 {
				t.Fatalf("Event %s %q happened %d times", event.Reason, event.Message, event.Count)
			}
			got = append(got, event.Type+" "+event.Reason)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}

// allowAnySpec makes the API server accept any spec, as with a CRD without validation.
func allowAnySpec(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	framework.Kubectl(t, "patch", "crd", k.CRD(), "--type=json",
		`--patch=[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
			{"op":"remove","path":"/spec/versions/0/subresources/scale"}]`)
	clustertest.WaitUntil(t, "any spec is allowed", func(ctx context.Context) error {
		return createRaw(k, ctx, ns, "try", `{"replicas":-1}`, metav1.DryRunAll)
	})
}

// createRaw creates an object with a spec that the Go type may not support.
func createRaw(k framework.Kind, ctx context.Context, ns, name, spec string, dryRun ...string) error {
	object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, k.APIVersion(), k.Kind, name, spec)
	request := client(k).Post().Namespace(ns).Resource(k.Resource).SetHeader("Content-Type", "application/json").Body([]byte(object))
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	return request.Do(ctx).Error()
}

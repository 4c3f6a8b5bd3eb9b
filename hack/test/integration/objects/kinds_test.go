// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// stored returns the number of stored objects of the kind.
func stored(t *testing.T, k framework.Kind) int {
	t.Helper()
	all, err := k.In(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}

// wantCounts compares the numbers of calls of the kind's controller in a namespace.
func wantCounts(t *testing.T, k framework.Kind, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, k.Calls(t, ns)); diff != "" {
		t.Errorf("unexpected calls of %s (-want +got):\n%s", k.Controller, diff)
	}
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

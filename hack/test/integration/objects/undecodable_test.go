// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestUndecodableObjectBlocksNoOthers(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		framework.OwnAPIServer(t) // because it changes the CRD
		ns := framework.NewNamespace(t)
		k.Create(t, ns, "before", 1)
		tighten := loosen(t, k, ns)
		storeBad(t, k, ns, "stored")
		storeBad(t, k, ns, "doomed")
		tighten()

		// With one worker, objects are synced in the order of their creation.
		server := framework.StartDaemon(t, k.OneWorker())
		k.WaitCondition(t, ns, "before", "Reconciling", "Progressing")
		k.Create(t, ns, "after", 1)
		k.WaitCondition(t, ns, "after", "Reconciling", "Progressing")
		waitUndecodable(k, server, 2)
		waitReported(t, k, ns, "stored", 1)
		waitReported(t, k, ns, "doomed", 1)

		// A repaired object is synced, a deleted one is forgotten.
		if err := k.TryPatch(t.Context(), ns, "stored", `{"spec":{"deploymentName":"stored"}}`); err != nil {
			t.Fatal(err)
		}
		k.WaitCondition(t, ns, "stored", "Reconciling", "Progressing")
		waitUndecodable(k, server, 1)
		framework.Kubectl(t, "-n", ns, "delete", k.Singular, "doomed")
		waitUndecodable(k, server, 0)

		// One is stored while the daemon runs, and one that was Ready becomes undecodable.
		watches := len(endedReads(t, k))
		tighten = loosen(t, k, ns)
		clustertest.WaitUntil(t, "the watch with the old validation has ended", func(context.Context) error {
			if len(endedReads(t, k)) == watches {
				return fmt.Errorf("%d watches of %s ended", watches, k.Resource)
			}
			return nil
		})
		k.Create(t, ns, "watched", 1)
		k.WaitCondition(t, ns, "watched", "Reconciling", "Progressing")
		reads := endedReads(t, k)

		storeBad(t, k, ns, "live")
		waitReported(t, k, ns, "live", 1)
		if err := k.TryPatch(t.Context(), ns, "before", `{"spec":{"deploymentName":["before"]}}`); err != nil {
			t.Fatal(err)
		}
		waitReported(t, k, ns, "before", 1)
		waitUndecodable(k, server, 2)
		for version := range 5 {
			if err := k.TryPatch(t.Context(), ns, "live", fmt.Sprintf(`{"metadata":{"annotations":{"version":"%d"}}}`, version)); err != nil {
				t.Fatal(err)
			}
			waitReported(t, k, ns, "live", 2+version)
		}
		// Its Deployment is left alone, including drift.
		framework.Kubectl(t, "-n", ns, "scale", "deployment", "before", "--replicas=5")
		drifted := framework.Deployment(t, ns, "before")
		k.Create(t, ns, "later", 1)
		k.WaitCondition(t, ns, "later", "Reconciling", "Progressing")
		if diff := cmp.Diff(drifted, framework.Deployment(t, ns, "before")); diff != "" {
			t.Errorf("the Deployment of an undecodable object was changed:\n%s", diff)
		}
		waitReported(t, k, ns, "before", 1) // enqueued by its Deployment, it is not reported again
		if diff := cmp.Diff(reads, endedReads(t, k)); diff != "" {
			t.Errorf("%s were listed or watched again although their watch worked (-before +after):\n%s", k.Resource, diff)
		}
		tighten()

		// A restart finds the same state.
		server.Stop()
		server = framework.StartDaemon(t, k.OneWorker())
		waitUndecodable(k, server, 2)
		k.Create(t, ns, "last", 1)
		k.WaitCondition(t, ns, "last", "Reconciling", "Progressing")
		if diff := cmp.Diff(drifted, framework.Deployment(t, ns, "before")); diff != "" {
			t.Errorf("the Deployment of an undecodable object was changed:\n%s", diff)
		}
		if err := k.TryPatch(t.Context(), ns, "before", `{"spec":{"deploymentName":"before"}}`); err != nil {
			t.Fatal(err)
		}
		k.WaitReplicas(t, ns, "before", 1)
		framework.Kubectl(t, "-n", ns, "delete", k.Singular, "live")
		waitUndecodable(k, server, 0)

		// The start, the restart, and the three changes of the CRD each end a watch.
		if reads := endedReads(t, k); len(reads) > 10 {
			t.Errorf("%s were listed or watched %d times: %q", k.Resource, len(reads), reads)
		}
	})
}

// loosen makes the API server accept any spec.deploymentName, as with an older CRD, until
// tighten is called.
func loosen(t *testing.T, k framework.Kind, ns string) (tighten func()) {
	t.Helper()
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName"
	replace := func(schema string) {
		t.Helper()
		framework.Kubectl(t, "patch", "crd", k.CRD(), "--type=json", fmt.Sprintf(`--patch=[{"op":"replace","path":%q,"value":%s}]`, path, schema))
	}
	strict := framework.Kubectl(t, "get", "crd", k.CRD(), "-o", "jsonpath={"+strings.ReplaceAll(strings.Replace(path, "/0/", "[0]/", 1), "/", ".")+"}")
	replace(`{"x-kubernetes-preserve-unknown-fields":true}`)
	clustertest.WaitUntil(t, "a deploymentName may be anything", func(ctx context.Context) error {
		return createBad(ctx, k, ns, "try", metav1.DryRunAll)
	})
	return func() {
		t.Helper()
		replace(strict)
		clustertest.WaitUntil(t, "a deploymentName must be a string", func(ctx context.Context) error {
			if err := createBad(ctx, k, ns, "try", metav1.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("response of the API server: %v", err)
			}
			return nil
		})
	}
}

// storeBad stores an object that cannot be decoded.
func storeBad(t *testing.T, k framework.Kind, ns, name string) {
	t.Helper()
	if err := createBad(t.Context(), k, ns, name); err != nil {
		t.Fatal(err)
	}
}

func createBad(ctx context.Context, k framework.Kind, ns, name string, dryRun ...string) error {
	return createRaw(k, ctx, ns, name, fmt.Sprintf(`{"deploymentName":[%q]}`, name), dryRun...)
}

// waitUndecodable waits until the daemon counts this many undecodable objects.
func waitUndecodable(k framework.Kind, server *framework.Replica, want int) {
	server.T.Helper()
	server.GetPage("/metrics", server.Admin(), http.StatusOK, fmt.Sprintf(
		"\n"+`sample_controller_manager_objects{condition="Stalled",reason="Undecodable",resource=%q} %d`+"\n", k.CRD(), want))
}

// waitReported waits until there are this many Events about an undecodable object. There
// must not be more.
func waitReported(t *testing.T, k framework.Kind, ns, name string, want int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s is reported %d times", k.Kind, name, want), func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind + ",involvedObject.name=" + name + ",reason=Undecodable"})
		if err != nil {
			return err
		}
		got := 0
		for _, event := range events.Items {
			got += int(event.Count)
			if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Message, "spec.deploymentName: array where string is expected") {
				t.Fatalf("Event = %s %s, want a Warning that names the field", event.Type, event.Message)
			}
		}
		if got > want {
			t.Fatalf("%s %s was reported %d times, want %d", k.Kind, name, got, want)
		}
		if got < want {
			return fmt.Errorf("reported %d times", got)
		}
		return nil
	})
}

// endedReads returns the daemon's lists and ended watches of the objects.
func endedReads(t *testing.T, k framework.Kind) []string {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent("informers"), func(event auditv1.Event) bool {
		// API servers without streaming lists refuse a watch before each list.
		return event.ObjectRef != nil && event.ObjectRef.Resource == k.Resource &&
			event.ResponseStatus.Code != http.StatusUnprocessableEntity
	})
	var reads []string
	for _, event := range events {
		reads = append(reads, event.Verb+" "+event.RequestURI)
	}
	return reads
}

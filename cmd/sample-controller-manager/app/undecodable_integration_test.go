// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/controller-manager/tolerant"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

func TestUndecodableObjectBlocksNoOthers(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ownCluster(t) // because it changes the CRD
		ns := newNamespace(t)
		admin := token(t, newNamespace(t), clusterRole(t, everything))
		k.Create(t, ns, "before", 1)
		tighten := k.loosen(t, ns)
		k.storeBad(t, ns, "stored")
		k.storeBad(t, ns, "doomed")
		tighten()

		// With one worker, objects are synced in the order of their creation.
		server := startDaemon(t, k.oneWorker())
		k.waitCondition(t, ns, "before", "Reconciling", "Progressing")
		k.Create(t, ns, "after", 1)
		k.waitCondition(t, ns, "after", "Reconciling", "Progressing")
		k.waitUndecodable(t, server, admin, 2)
		k.waitReported(t, ns, "stored", 1)
		k.waitReported(t, ns, "doomed", 1)

		// A repaired object is synced, a deleted one is forgotten.
		if err := k.TryPatch(t.Context(), ns, "stored", `{"spec":{"deploymentName":"stored"}}`); err != nil {
			t.Fatal(err)
		}
		k.waitCondition(t, ns, "stored", "Reconciling", "Progressing")
		k.waitUndecodable(t, server, admin, 1)
		kubectl(t, "-n", ns, "delete", k.Singular, "doomed")
		k.waitUndecodable(t, server, admin, 0)

		// One is stored while the daemon runs, and one that was Ready becomes undecodable.
		watches := len(k.endedReads(t))
		tighten = k.loosen(t, ns)
		clustertest.WaitUntil(t, "the watch with the old validation has ended", func(context.Context) error {
			if len(k.endedReads(t)) == watches {
				return fmt.Errorf("%d watches of %s ended", watches, k.Resource)
			}
			return nil
		})
		k.Create(t, ns, "watched", 1)
		k.waitCondition(t, ns, "watched", "Reconciling", "Progressing")
		reads := k.endedReads(t)

		k.storeBad(t, ns, "live")
		k.waitReported(t, ns, "live", 1)
		if err := k.TryPatch(t.Context(), ns, "before", `{"spec":{"deploymentName":["before"]}}`); err != nil {
			t.Fatal(err)
		}
		k.waitReported(t, ns, "before", 1)
		k.waitUndecodable(t, server, admin, 2)
		for version := range 5 {
			if err := k.TryPatch(t.Context(), ns, "live", fmt.Sprintf(`{"metadata":{"annotations":{"version":"%d"}}}`, version)); err != nil {
				t.Fatal(err)
			}
			k.waitReported(t, ns, "live", 2+version)
		}
		// Its Deployment is left alone, including drift.
		kubectl(t, "-n", ns, "scale", "deployment", "before", "--replicas=5")
		drifted := getDeployment(t, ns, "before")
		k.Create(t, ns, "later", 1)
		k.waitCondition(t, ns, "later", "Reconciling", "Progressing")
		if diff := cmp.Diff(drifted, getDeployment(t, ns, "before")); diff != "" {
			t.Errorf("the Deployment of an undecodable object was changed:\n%s", diff)
		}
		k.waitReported(t, ns, "before", 1) // enqueued by its Deployment, it is not reported again
		if diff := cmp.Diff(reads, k.endedReads(t)); diff != "" {
			t.Errorf("%s were listed or watched again although their watch worked (-before +after):\n%s", k.Resource, diff)
		}
		tighten()

		// A restart finds the same state.
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		server = startDaemon(t, k.oneWorker())
		k.waitUndecodable(t, server, admin, 2)
		k.Create(t, ns, "last", 1)
		k.waitCondition(t, ns, "last", "Reconciling", "Progressing")
		if diff := cmp.Diff(drifted, getDeployment(t, ns, "before")); diff != "" {
			t.Errorf("the Deployment of an undecodable object was changed:\n%s", diff)
		}
		if err := k.TryPatch(t.Context(), ns, "before", `{"spec":{"deploymentName":"before"}}`); err != nil {
			t.Fatal(err)
		}
		k.waitReplicas(t, ns, "before", 1)
		kubectl(t, "-n", ns, "delete", k.Singular, "live")
		k.waitUndecodable(t, server, admin, 0)

		// The start, the restart, and the three changes of the CRD each end a watch.
		if reads := k.endedReads(t); len(reads) > 10 {
			t.Errorf("%s were listed or watched %d times: %q", k.Resource, len(reads), reads)
		}
	})
}

func TestUndecodableMarkerCannotBeForged(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		k.Create(t, ns, "a", 1)
		annotation, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{tolerant.AnnotationDecodeError: "forged"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.TryPatch(t.Context(), ns, "a", string(annotation)); !apierrors.IsInvalid(err) {
			t.Errorf("error of storing the annotation %q = %v, want it refused as invalid", tolerant.AnnotationDecodeError, err)
		}
	})
}

// ownCluster makes the test use a cluster of its own. No other test runs at the same time,
// because a process can have only one daemon.
func ownCluster(t *testing.T) {
	t.Helper()
	theirs, own := shared, newCluster()
	shared = own
	t.Cleanup(func() {
		shared = theirs
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// loosen makes the API server accept any spec.deploymentName, as with an older CRD, until
// tighten is called.
func (k kind) loosen(t *testing.T, ns string) (tighten func()) {
	t.Helper()
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName"
	replace := func(schema string) {
		t.Helper()
		kubectl(t, "patch", "crd", k.CRD(), "--type=json", fmt.Sprintf(`--patch=[{"op":"replace","path":%q,"value":%s}]`, path, schema))
	}
	strict := kubectl(t, "get", "crd", k.CRD(), "-o", "jsonpath={"+strings.ReplaceAll(strings.Replace(path, "/0/", "[0]/", 1), "/", ".")+"}")
	replace(`{"x-kubernetes-preserve-unknown-fields":true}`)
	clustertest.WaitUntil(t, "a deploymentName may be anything", func(ctx context.Context) error {
		return k.createBad(ctx, ns, "try", metav1.DryRunAll)
	})
	return func() {
		t.Helper()
		replace(strict)
		clustertest.WaitUntil(t, "a deploymentName must be a string", func(ctx context.Context) error {
			if err := k.createBad(ctx, ns, "try", metav1.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("response of the API server: %v", err)
			}
			return nil
		})
	}
}

// storeBad stores an object that cannot be decoded.
func (k kind) storeBad(t *testing.T, ns, name string) {
	t.Helper()
	if err := k.createBad(t.Context(), ns, name); err != nil {
		t.Fatal(err)
	}
}

func (k kind) createBad(ctx context.Context, ns, name string, dryRun ...string) error {
	object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":{"deploymentName":[%[3]q]}}`, k.apiVersion(), k.Kind, name)
	request := k.client().Post().Namespace(ns).Resource(k.Resource).SetHeader("Content-Type", "application/json").Body([]byte(object))
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	return request.Do(ctx).Error()
}

// waitUndecodable waits until the daemon counts this many undecodable objects.
func (k kind) waitUndecodable(t *testing.T, server *apptesting.Server, token string, want int) {
	t.Helper()
	series := fmt.Sprintf("\n"+`sample_controller_manager_objects{condition="Stalled",reason="Undecodable",resource="%s.%s"}`, k.Resource, k.Group)
	clustertest.WaitUntil(t, fmt.Sprintf("%d undecodable %s are counted", want, k.Resource), func(ctx context.Context) error {
		code, body, err := server.Get(ctx, "/metrics", token)
		if err == nil && !strings.Contains(body, fmt.Sprintf("%s %d\n", series, want)) {
			_, got, _ := strings.Cut(body, series)
			err = fmt.Errorf("code %d: %.60s", code, got)
		}
		return err
	})
}

// waitReported waits until there are this many Events about an undecodable object. There
// must not be more.
func (k kind) waitReported(t *testing.T, ns, name string, want int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s is reported %d times", k.Kind, name, want), func(ctx context.Context) error {
		events, err := shared.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind + ",involvedObject.name=" + name + ",reason=Undecodable"})
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
func (k kind) endedReads(t *testing.T) []string {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent("informers"), func(event auditv1.Event) bool {
		// API servers without streaming lists refuse a watch before each list.
		return event.ObjectRef != nil && event.ObjectRef.Resource == k.Resource && event.ResponseStatus.Code != http.StatusUnprocessableEntity
	})
	var reads []string
	for _, event := range events {
		reads = append(reads, event.Verb+" "+event.RequestURI)
	}
	return reads
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestInvalidStoredObject stores objects that the API server rejects today.
func TestInvalidStoredObject(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		framework.OwnAPIServer(t) // because it changes the CRD
		ns := framework.NewNamespace(t)
		scraper := framework.TokenWith(t, framework.NewNamespace(t), "sample-controller-manager-metrics-reader")
		invalid := map[string]struct{ spec, message string }{
			"missing":  {`{}`, "spec.deploymentName is empty: set it to the name of the Deployment to manage"},
			"empty":    {`{"deploymentName":""}`, "spec.deploymentName is empty: set it to the name of the Deployment to manage"},
			"capitals": {`{"deploymentName":"My_App"}`, `spec.deploymentName "My_App" is not a valid name: a lowercase RFC 1123 subdomain must consist of`},
			"negative": {`{"deploymentName":"negative","replicas":-1}`, "spec.replicas is -1: set it to 0 or more, or leave it out"},
		}
		allowAnySpec(t, k, ns)
		for name, foo := range invalid {
			if err := createRaw(k, t.Context(), ns, name, foo.spec); err != nil {
				t.Fatal(err)
			}
		}
		if err := framework.Cluster().Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		clustertest.WaitUntil(t, "the validation is restored", func(ctx context.Context) error {
			if err := createRaw(k, ctx, ns, "try", `{}`, metav1.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("response of the API server: %v", err)
			}
			return nil
		})

		server := framework.StartDaemon(t)
		k.CatchUp(t)
		baseline := syncs(t, k, server, scraper) // metrics are per process
		for name, foo := range invalid {
			stalled := k.WaitCondition(t, ns, name, "Stalled", "InvalidSpec")
			for _, conditionType := range []string{"Stalled", "Ready"} {
				if got := meta.FindStatusCondition(stalled.Status.Conditions, conditionType).Message; !strings.HasPrefix(got,
					foo.message) {
					t.Errorf("message of %s of %s is %q, want %q", conditionType, name, got, foo.message)
				}
			}
		}
		for name := range invalid {
			if name != "negative" { // its replicas are corrected by the API server before anything else
				k.Annotate(t, ns, name)
			}
		}
		k.Create(t, ns, "valid", 1)
		k.WaitCondition(t, ns, "valid", "Reconciling", "Progressing")
		var total int
		clustertest.WaitUntil(t, "the daemon is idle", func(context.Context) error {
			before := syncs(t, k, server, scraper)
			time.Sleep(2 * time.Second)
			if total = syncs(t, k, server, scraper); total != before {
				return fmt.Errorf("%d syncs in 2 seconds", total-before)
			}
			return nil
		})
		// At most one for each creation, own write and annotation, and a few more for
		// refused writes.
		if most := 6 * (len(invalid) + 1); total-baseline > most {
			t.Errorf("%d syncs, want at most %d", total-baseline, most)
		}
		wantCounts(t, k, ns, map[string]int{k.PatchStatus(): len(invalid) + 1, "create deployments": 1})
		wantEvents(t, k, ns, "Warning InvalidSpec", "Warning InvalidSpec", "Warning InvalidSpec", "Warning InvalidSpec")

		for name := range invalid {
			framework.Kubectl(t, "-n", ns, "patch", k.Singular, name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"deploymentName":%q,"replicas":2}}`, name))
			k.WaitReplicas(t, ns, name, 2)
			k.WaitCondition(t, ns, name, "Reconciling", "Progressing")
		}
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

// syncs returns the number of syncs of the kind's controller, without those that were
// postponed: their number depends on how stale the cache is on this machine.
func syncs(t *testing.T, k framework.Kind, server *framework.Replica, token string) (total int) {
	t.Helper()
	body := server.GetPage("/metrics", token, http.StatusOK)
	series := regexp.MustCompile(`(?m)^sample_controller_manager_sync_total\{controller="`+k.Controller+`",result="(.*)"\} (\d+)$`).FindAllStringSubmatch(body, -1)
	if len(series) == 0 {
		t.Fatal(errors.New("no syncs counted"))
	}
	for _, match := range series {
		n, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		if match[1] != string(reconcile.ResultStale) {
			total += n
		}
	}
	return total
}

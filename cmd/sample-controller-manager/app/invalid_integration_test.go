// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

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

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
)

// TestInvalidFooFromBeforeValidation has Foos stored that the API server refuses
// today.
func TestInvalidFooFromBeforeValidation(t *testing.T) {
	ownCluster(t) // because it changes the CRD
	ns := newNamespace(t)
	scraper := token(t, newNamespace(t), "sample-controller-manager-metrics-reader")
	invalid := map[string]struct{ spec, message string }{
		"missing":  {`{}`, "spec.deploymentName is empty: set it to the name of the Deployment to keep"},
		"empty":    {`{"deploymentName":""}`, "spec.deploymentName is empty: set it to the name of the Deployment to keep"},
		"capitals": {`{"deploymentName":"My_App"}`, `spec.deploymentName "My_App" is no valid name: a lowercase RFC 1123 subdomain must consist of`},
		"negative": {`{"deploymentName":"negative","replicas":-1}`, "spec.replicas is -1: set it to 0 or more, or leave it out"},
	}
	allowAnySpec(t, ns)
	for name, foo := range invalid {
		if err := createRaw(t.Context(), ns, name, foo.spec); err != nil {
			t.Fatal(err)
		}
	}
	if err := testCluster.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the validation is back", func(ctx context.Context) error {
		if err := createRaw(ctx, ns, "try", `{}`, metav1.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the API server says %v", err)
		}
		return nil
	})

	server := startDaemon(t)
	baseline := syncs(t, server, scraper) // metrics are those of the process
	for name, foo := range invalid {
		stalled := waitCondition(t, ns, name, "Stalled", "InvalidSpec")
		for _, conditionType := range []string{"Stalled", "Ready"} {
			if got := meta.FindStatusCondition(stalled.Status.Conditions, conditionType).Message; !strings.HasPrefix(got, foo.message) {
				t.Errorf("message of %s of Foo %s is %q, want %q", conditionType, name, got, foo.message)
			}
		}
	}
	for name := range invalid {
		if name != "negative" { // which the API server has mended before anything else
			annotate(t, ns, name)
		}
	}
	createFoo(t, ns, "valid", 1)
	waitCondition(t, ns, "valid", "Reconciling", "Progressing")
	var total int
	eventually(t, "the daemon rests", func(context.Context) error {
		before := syncs(t, server, scraper)
		time.Sleep(2 * time.Second)
		if total = syncs(t, server, scraper); total != before {
			return fmt.Errorf("%d syncs in 2 seconds", total-before)
		}
		return nil
	})
	// At most one for each creation, own write and annotation, and for a cache that
	// was late a few more.
	if most := 6 * (len(invalid) + 1); total-baseline > most {
		t.Errorf("%d syncs, want at most %d", total-baseline, most)
	}
	wantCounts(t, ns, map[string]int{"patch foos/status": len(invalid) + 1, "create deployments": 1})
	wantEvents(t, ns, "Warning InvalidSpec", "Warning InvalidSpec", "Warning InvalidSpec", "Warning InvalidSpec")

	for name := range invalid {
		kubectl(t, "-n", ns, "patch", "foo", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"deploymentName":%q,"replicas":2}}`, name))
		waitReplicas(t, ns, name, 2)
		waitCondition(t, ns, name, "Reconciling", "Progressing")
	}
}

// allowAnySpec has the API server store any Foo, as with a CRD that validates
// nothing.
func allowAnySpec(t *testing.T, ns string) {
	t.Helper()
	kubectl(t, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json",
		`--patch=[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
			{"op":"remove","path":"/spec/versions/0/subresources/scale"}]`)
	eventually(t, "any spec is allowed", func(ctx context.Context) error { return createRaw(ctx, ns, "try", `{"replicas":-1}`, metav1.DryRunAll) })
}

// createRaw creates a Foo with a spec that the Go type may not be able to say.
func createRaw(ctx context.Context, ns, name, spec string, dryRun ...string) error {
	foo := fmt.Sprintf(`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"name":%q},"spec":%s}`, name, spec)
	request := sample.SamplecontrollerV1alpha1().RESTClient().Post().Namespace(ns).Resource("foos").SetHeader("Content-Type", "application/json").Body([]byte(foo))
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	return request.Do(ctx).Error()
}

// syncs returns how many syncs the daemon has counted.
func syncs(t *testing.T, server *apptesting.Server, token string) (total int) {
	t.Helper()
	body := get(t, server, "/metrics", token, http.StatusOK)
	series := regexp.MustCompile(`(?m)^sample_controller_manager_sync_total\{.*\} (\d+)$`).FindAllStringSubmatch(body, -1)
	if len(series) == 0 {
		t.Fatal(errors.New("no syncs are counted"))
	}
	for _, match := range series {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

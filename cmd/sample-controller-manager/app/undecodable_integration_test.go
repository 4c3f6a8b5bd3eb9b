// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"
	"samplecontroller.io/controller-manager/lenient"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

func TestUndecodableFooBlocksNoOther(t *testing.T) {
	ownCluster(t) // because it changes the CRD
	ns := newNamespace(t)
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	createFoo(t, ns, "before", 1)
	tighten := loosen(t, ns)
	storeBad(t, ns, "stored")
	storeBad(t, ns, "doomed")
	tighten()

	// With one worker a Foo that is made later is served later.
	server := startDaemon(t, "--concurrent-foo-syncs=1")
	waitCondition(t, ns, "before", "Reconciling", "Progressing")
	createFoo(t, ns, "after", 1)
	waitCondition(t, ns, "after", "Reconciling", "Progressing")
	waitUndecodable(t, server, admin, 2)
	waitReported(t, ns, "stored", 1)
	waitReported(t, ns, "doomed", 1)

	// Mended it is served, deleted it is forgotten.
	if err := patchFoo(t.Context(), ns, "stored", `{"spec":{"deploymentName":"stored"}}`); err != nil {
		t.Fatal(err)
	}
	waitCondition(t, ns, "stored", "Reconciling", "Progressing")
	waitUndecodable(t, server, admin, 1)
	kubectl(t, "-n", ns, "delete", "foo", "doomed")
	waitUndecodable(t, server, admin, 0)

	// While the daemon runs, one is stored and one that was served turns bad.
	watches := len(endedReads(t))
	tighten = loosen(t, ns)
	eventually(t, "the watch that knew the old validation has ended", func(context.Context) error {
		if len(endedReads(t)) == watches {
			return fmt.Errorf("%d watches of Foos have ended", watches)
		}
		return nil
	})
	createFoo(t, ns, "watched", 1)
	waitCondition(t, ns, "watched", "Reconciling", "Progressing")
	reads := endedReads(t)

	storeBad(t, ns, "live")
	waitReported(t, ns, "live", 1)
	if err := patchFoo(t.Context(), ns, "before", `{"spec":{"deploymentName":["before"]}}`); err != nil {
		t.Fatal(err)
	}
	waitReported(t, ns, "before", 1)
	waitUndecodable(t, server, admin, 2)
	for version := range 5 {
		if err := patchFoo(t.Context(), ns, "live", fmt.Sprintf(`{"metadata":{"annotations":{"version":"%d"}}}`, version)); err != nil {
			t.Fatal(err)
		}
		waitReported(t, ns, "live", 2+version)
	}
	// Its Deployment is left as it is, drift included.
	kubectl(t, "-n", ns, "scale", "deployment", "before", "--replicas=5")
	drifted := getDeployment(t, ns, "before")
	createFoo(t, ns, "later", 1)
	waitCondition(t, ns, "later", "Reconciling", "Progressing")
	if diff := cmp.Diff(drifted, getDeployment(t, ns, "before")); diff != "" {
		t.Errorf("the Deployment of an undecodable Foo was changed:\n%s", diff)
	}
	waitReported(t, ns, "before", 1) // woken by its Deployment, it is not reported again
	if diff := cmp.Diff(reads, endedReads(t)); diff != "" {
		t.Errorf("Foos were listed or watched anew though their watch was served (-before +after):\n%s", diff)
	}
	tighten()

	// A restart finds them as they are.
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server = startDaemon(t, "--concurrent-foo-syncs=1")
	waitUndecodable(t, server, admin, 2)
	createFoo(t, ns, "last", 1)
	waitCondition(t, ns, "last", "Reconciling", "Progressing")
	if diff := cmp.Diff(drifted, getDeployment(t, ns, "before")); diff != "" {
		t.Errorf("the Deployment of an undecodable Foo was changed:\n%s", diff)
	}
	if err := patchFoo(t.Context(), ns, "before", `{"spec":{"deploymentName":"before"}}`); err != nil {
		t.Fatal(err)
	}
	waitReplicas(t, ns, "before", 1)
	kubectl(t, "-n", ns, "delete", "foo", "live")
	waitUndecodable(t, server, admin, 0)

	// Start, restart, and three changes of the CRD end a watch each.
	if reads := endedReads(t); len(reads) > 10 {
		t.Errorf("Foos were listed or watched %d times: %q", len(reads), reads)
	}
}

func TestNobodyCanPassAFooOffAsUndecodable(t *testing.T) {
	ns := newNamespace(t)
	createFoo(t, ns, "a", 1)
	annotation, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{lenient.AnnotationDecodeError: "forged"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := patchFoo(t.Context(), ns, "a", string(annotation)); !apierrors.IsInvalid(err) {
		t.Errorf("error of storing the annotation %q = %v, want it refused as invalid", lenient.AnnotationDecodeError, err)
	}
}

// ownCluster has the test use a cluster that no other test uses. None runs
// meanwhile: there is one daemon at a time.
func ownCluster(t *testing.T) {
	t.Helper()
	own, err := cluster.Start(t.Context(), cluster.Options{AuditLog: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	shared, sharedKube, sharedSample := testCluster, kube, sample
	t.Cleanup(func() {
		testCluster, kube, sample = shared, sharedKube, sharedSample
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	testCluster = own
	if err := own.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kube, err = kubernetes.NewForConfig(own.Config()); err != nil {
		t.Fatal(err)
	}
	if sample, err = sampleclientset.NewForConfig(own.Config()); err != nil {
		t.Fatal(err)
	}
}

// loosen has the API server store any spec.deploymentName, as one would whose CRD
// is older, until tighten is called.
func loosen(t *testing.T, ns string) (tighten func()) {
	t.Helper()
	const crd, path = "foos.samplecontroller.k8s.io", "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName"
	replace := func(schema string) {
		t.Helper()
		kubectl(t, "patch", "crd", crd, "--type=json", fmt.Sprintf(`--patch=[{"op":"replace","path":%q,"value":%s}]`, path, schema))
	}
	strict := kubectl(t, "get", "crd", crd, "-o", "jsonpath={"+strings.ReplaceAll(strings.Replace(path, "/0/", "[0]/", 1), "/", ".")+"}")
	replace(`{"x-kubernetes-preserve-unknown-fields":true}`)
	eventually(t, "a deploymentName may be anything", func(ctx context.Context) error {
		return createBad(ctx, ns, "try", metav1.DryRunAll)
	})
	return func() {
		t.Helper()
		replace(strict)
		eventually(t, "a deploymentName must be a string", func(ctx context.Context) error {
			if err := createBad(ctx, ns, "try", metav1.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("the API server says %v", err)
			}
			return nil
		})
	}
}

// storeBad stores a Foo that cannot be decoded.
func storeBad(t *testing.T, ns, name string) {
	t.Helper()
	if err := createBad(t.Context(), ns, name); err != nil {
		t.Fatal(err)
	}
}

func createBad(ctx context.Context, ns, name string, dryRun ...string) error {
	foo := fmt.Sprintf(`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"name":%q},"spec":{"deploymentName":[%[1]q]}}`, name)
	request := sample.SamplecontrollerV1alpha1().RESTClient().Post().Namespace(ns).Resource("foos").SetHeader("Content-Type", "application/json").Body([]byte(foo))
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	return request.Do(ctx).Error()
}

// patchFoo patches a Foo without decoding the answer.
func patchFoo(ctx context.Context, ns, name, patch string) error {
	return sample.SamplecontrollerV1alpha1().RESTClient().Patch(types.MergePatchType).Namespace(ns).Resource("foos").Name(name).Body([]byte(patch)).Do(ctx).Error()
}

// waitUndecodable waits until the daemon counts so many undecodable Foos.
func waitUndecodable(t *testing.T, server *apptesting.Server, token string, want int) {
	t.Helper()
	series := fmt.Sprintf("\n"+`sample_controller_manager_undecodable_objects{controller="foo-controller"} %d`+"\n", want)
	eventually(t, fmt.Sprintf("%d undecodable Foos are counted", want), func(ctx context.Context) error {
		code, body, err := server.Get(ctx, "/metrics", token)
		if err == nil && !strings.Contains(body, series) {
			_, got, _ := strings.Cut(body, "\nsample_controller_manager_undecodable_objects")
			err = fmt.Errorf("code %d: %.60s", code, got)
		}
		return err
	})
}

// waitReported waits until so many Events tell that a Foo cannot be decoded. There
// must not be more.
func waitReported(t *testing.T, ns, name string, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("Foo %s is reported %d times", name, want), func(ctx context.Context) error {
		events, err := kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Foo,involvedObject.name=" + name + ",reason=Undecodable"})
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
			t.Fatalf("Foo %s was reported %d times, want %d", name, got, want)
		}
		if got < want {
			return fmt.Errorf("it was reported %d times", got)
		}
		return nil
	})
}

// endedReads returns the lists and the ended watches of Foos by the daemon.
func endedReads(t *testing.T) []string {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent("informers"), func(event auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Resource == "foos"
	})
	if err != nil {
		t.Fatal(err)
	}
	var reads []string
	for _, event := range events {
		reads = append(reads, event.Verb+" "+event.RequestURI)
	}
	return reads
}

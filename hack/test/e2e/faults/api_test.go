// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// soon is how soon a controller must have recovered after its API is available.
const soon = 5 * time.Second

// installCRD installs our CRDs, and returns when the API server serves the kind.
func installCRD(t *testing.T, k framework.Kind) (served time.Time) {
	t.Helper()
	framework.Kubectl(t, "apply", "-k", framework.Manifests(t, "crds"))
	clustertest.WaitUntil(t, k.CRD()+" is served", func(ctx context.Context) error {
		_, err := k.In(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
	return time.Now()
}

// TestFaultAPIAbsentAtStart starts the daemon before a CRD exists.
func TestFaultAPIAbsentAtStart(t *testing.T) {
	peer := "not tried; make test-faults does"
	if os.Getenv("FAULTS_PEERS") != "" { // takes time, and shows nothing about the daemon
		peer = stockWithoutAPI(t)
	}

	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	framework.RestoreCRDs(t)
	framework.DeleteCRD(t, framework.Icecreams)
	started := time.Now()
	r := framework.StartReplica(t)
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)
	framework.Foos.WaitPodsReported(t, ns, "a", 1) // the aggregator works, too
	others := time.Since(started)
	r.WaitState(framework.Icecreams.Controller, "WaitingForAPI", framework.Icecreams.CRD())
	r.WaitState(framework.Foos.Controller, "Running")
	r.WaitState(framework.Aggregator, "Running", "icecreams is paused", framework.Icecreams.CRD())
	r.Ready()

	served := installCRD(t, framework.Icecreams)
	took := max(0, r.WaitState(framework.Icecreams.Controller, "Running").Sub(served))
	framework.WantSoon(t, "running after the CRD was served", took, soon)
	framework.Icecreams.Create(t, ns, "b", 1)
	framework.Icecreams.WaitReady(t, ns, "b", 1)
	framework.Icecreams.WaitPodsReported(t, ns, "b", 1)
	// A CRD that an earlier test restored may be served late.
	if lines := r.LogAbout(`"Waiting for API"`, framework.Icecreams.CRD()); len(lines) != 1 {
		t.Errorf("log lines about waiting for the API: %q, want 1", lines)
	}
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "O1", Fault: "a CRD is missing at startup",
		Ours: fmt.Sprintf("other objects Ready after %s; WaitingForAPI; Running %s after the CRD is served", framework.Seconds(others), framework.Seconds(took)),
		Peer: peer,
	})
}

// stockWithoutAPI starts sample-controller before its CRD exists, and describes the effect.
func stockWithoutAPI(t *testing.T) string {
	t.Helper()
	ns := framework.NewNamespace(t)
	framework.RestoreCRDs(t)
	framework.DeleteCRD(t, framework.Foos)
	p := framework.StartSampleController(t)
	ended := func() bool {
		select {
		case <-p.Done:
			return true
		default:
			return false
		}
	}
	// It backs off exponentially.
	clustertest.WaitUntil(t, "sample-controller has tried 5 times", func(context.Context) error {
		if n := strings.Count(p.Log.String(), "Failed to watch"); n < 5 && !ended() {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	served := installCRD(t, framework.Foos)
	framework.Foos.Create(t, ns, "a", 1)
	if ended() {
		return "sample-controller ends: " + p.Cmd.ProcessState.String()
	}
	framework.WaitDeployment(t, ns, "a")
	took := time.Since(served)
	errs := strings.Count(p.Log.String(), "\nE")
	p.Signal(syscall.SIGKILL)
	<-p.Done
	return fmt.Sprintf("sample-controller creates the Deployment %s after the CRD is served; %d error lines", framework.Seconds(took), errs)
}

// TestFaultAPIRecreated deletes the CRD of 100 Foos under a running daemon and recreates it,
// after a while and at once.
func TestFaultAPIRecreated(t *testing.T) {
	framework.FreeLease(t)
	framework.RestoreCRDs(t)
	r := framework.StartReplica(t).Ready()
	ns := framework.NewNamespace(t)
	waitReadyAll(t, ns, createMany(t, ns))
	other := framework.NewNamespace(t)
	var figures []string
	for _, quick := range []bool{false, true} {
		before := len(r.Log.String())
		began := time.Now()
		framework.DeleteCRD(t, framework.Foos)
		if !quick {
			r.WaitState(framework.Foos.Controller, "WaitingForAPI", framework.Foos.CRD())
			framework.Icecreams.Create(t, other, "meanwhile", 1)
			framework.Icecreams.WaitReady(t, other, "meanwhile", 1)
		}
		served := installCRD(t, framework.Foos)
		running := max(0, r.WaitState(framework.Foos.Controller, "Running").Sub(served))
		framework.WantSoon(t, "running after the CRD was served", running, soon)

		uids := createMany(t, ns)
		created := time.Now()
		// Either Ready, or blocked by the Deployment of an earlier Foo.
		waitEach(t, ns, uids, "has a correct status", func(ready, reason string) bool {
			return ready == "True" || reason == "WaitingForDeletion" || reason == "DeletionBlocked" || reason == "Progressing"
		})
		right := time.Since(created)
		framework.WantSoon(t, "correct statuses of all objects", right, soon)
		// The garbage collector deletes the Deployments of the old objects. It needs up to 30
		// s to discover a new CRD.
		waitReadyAll(t, ns, uids)
		wantNothingWrong(t, ns, began)
		lines, _ := wantThrottled(t, r.Log.String()[before:], began)
		what := map[bool]string{false: "slowly", true: "at once"}[quick]
		figures = append(figures, fmt.Sprintf("%s: Running after %s, 100 statuses correct %s after the last object was created, %d error lines", what, framework.Seconds(running), framework.Seconds(right), lines))
	}
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{ID: "O2", Fault: "a CRD is deleted and recreated, with 100 objects", Ours: strings.Join(figures, "; "), Peer: "not run; see O1"})
}

// createMany creates the Foos of a fault, and returns their UIDs by name.
func createMany(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for i := range framework.Count(100, 20) {
		name := fmt.Sprintf("foo-%d", i)
		clustertest.WaitUntil(t, "a Foo can be created", func(ctx context.Context) error { // a new CRD accepts none at first
			foo, err := framework.Foos.TryDeclare(ctx, ns, name,
				samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](0)})
			if err == nil {
				uids[name] = foo.UID
			}
			return err
		})
	}
	return uids
}

func waitReadyAll(t *testing.T, ns string, uids map[string]types.UID) {
	t.Helper()
	waitEach(t, ns, uids, "is ready", func(ready, _ string) bool { return ready == "True" })
}

// waitEach waits until the Ready condition of each Foo, for its current generation, is as
// wanted.
func waitEach(t *testing.T, ns string, uids map[string]types.UID, what string, is func(ready, reason string) bool) {
	t.Helper()
	clustertest.WaitUntil(t, "each Foo "+what, func(ctx context.Context) error {
		list, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != len(uids) {
			return fmt.Errorf("got %d Foos, want %d", len(list.Items), len(uids))
		}
		for _, foo := range list.Items {
			if foo.UID != uids[foo.Name] {
				return fmt.Errorf("%s has the UID %s, want %s", foo.Name, foo.UID, uids[foo.Name])
			}
			if foo.Status.ObservedGeneration != foo.Generation || len(foo.Status.Conditions) == 0 {
				return fmt.Errorf("%s has no status", foo.Name)
			}
			if c := foo.Status.Conditions[0]; !is(string(c.Status), c.Reason) {
				return fmt.Errorf("%s: %s=%s for %s: %s", foo.Name, c.Type, c.Status, c.Reason, c.Message)
			}
		}
		return nil
	})
}

// wantNothingWrong checks that the controller has created no Deployment twice since the given
// time, and has changed or deleted none.
func wantNothingWrong(t *testing.T, ns string, since time.Time) {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(framework.Foos.Controller), cluster.InNamespace(ns),
		func(event auditv1.Event) bool {
			return event.RequestReceivedTimestamp.After(since)
		})
	framework.WantCreatedOnce(t, events)
	for _, event := range events {
		call := cluster.Call(event)
		if event.ResponseStatus != nil && event.ResponseStatus.Code < 300 && (call == "patch deployments" || call == "delete deployments") {
			t.Errorf("%s %s", call, event.ObjectRef.Name)
		}
	}
}

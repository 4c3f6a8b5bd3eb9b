// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

const (
	// soon is within what a controller is right again after its API has come.
	soon = 5 * time.Second
	// objectsOfFault is how many objects go with their CRD, and come again.
	objectsOfFault = 100
)

// crd returns the name of the kind's CRD.
func (k kind) crd() string { return k.resource + "." + k.Group }

// installCRD installs our CRDs, and returns when the API server serves the kind.
func (k kind) installCRD(t *testing.T) (served time.Time) {
	t.Helper()
	kubectl(t, "apply", "-k", manifests(t, "crds"))
	waitUntil(t, k.crd()+" is served", func(ctx context.Context) error {
		_, err := k.in(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
	return time.Now()
}

// state returns what a controller is doing and why, as the replica tells everybody.
func (r *replica) state(ctx context.Context, controller string) (string, error) {
	_, body, err := r.get(ctx, "/healthz?verbose")
	for line := range strings.Lines(body) {
		if state, ok := strings.CutPrefix(line, controller+": "); ok {
			return strings.TrimSpace(state), nil
		}
	}
	return "", errors.Join(fmt.Errorf("nothing about %s in: %s", controller, body), err)
}

// waitState waits until a controller is in a state, for a reason that has all these words,
// and returns when that was seen.
func (r *replica) waitState(controller, state string, words ...string) time.Time {
	r.t.Helper()
	waitUntil(r.t, controller+" is "+state, func(ctx context.Context) error {
		is, err := r.state(ctx, controller)
		if err != nil {
			return err
		}
		for _, want := range append(words, state+" since ") {
			if !strings.Contains(is, want) {
				return fmt.Errorf("it is %s", is)
			}
		}
		return nil
	})
	return time.Now()
}

// wantSoon checks that something took no longer than it may.
func wantSoon(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	if took > most {
		t.Errorf("%s took %v, want at most %v", what, took, most)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// TestFaultAnAPIIsAbsentAtStart starts the daemon before a CRD is there.
func TestFaultAnAPIIsAbsentAtStart(t *testing.T) {
	peer := ofPeer(t, stockWithoutAPI)

	freeLease(t)
	ns := newNamespace(t)
	restoreCRDs(t)
	kubectl(t, "delete", "crd", icecreams.crd(), "--wait", "--timeout=60s")
	started := time.Now()
	r := startReplica(t)
	foos.create(t, ns, "a", 1)
	foos.waitReady(t, ns, "a", 1)
	foos.waitTold(t, ns, "a", 1) // by the aggregator, too
	others := time.Since(started)
	r.waitState(icecreams.controller, "WaitingForAPI", icecreams.crd())
	r.waitState(foos.controller, "Running")
	r.waitState(aggregator, "Running", "icecreams rests", icecreams.crd())
	r.ready()

	served := icecreams.installCRD(t)
	took := max(0, r.waitState(icecreams.controller, "Running").Sub(served))
	wantSoon(t, "to run after the CRD was served", took, soon)
	icecreams.create(t, ns, "b", 1)
	icecreams.waitReady(t, ns, "b", 1)
	icecreams.waitTold(t, ns, "b", 1)
	if lines := strings.Count(r.log.String(), `"Waiting for API"`); lines != 1 {
		t.Errorf("%d lines in the log say that an API is waited for, want 1", lines)
	}
	r.stop()
	reportFault(t, faultRow{
		ID: "O1", Fault: "a CRD is absent at start",
		Ours: fmt.Sprintf("others ready after %s; WaitingForAPI; runs %s after the CRD is served", seconds(others), seconds(took)),
		Peer: peer,
	})
}

// stockWithoutAPI has sample-controller start before its CRD is there, and says what comes
// of it.
func stockWithoutAPI(t *testing.T) string {
	t.Helper()
	ns := newNamespace(t)
	restoreCRDs(t)
	kubectl(t, "delete", "crd", foos.crd(), "--wait", "--timeout=60s")
	p := startSampleController(t)
	p.waitBackedOff()
	served := foos.installCRD(t)
	foos.create(t, ns, "a", 1)
	return stockServes(t, p, ns, "a", "the CRD is served", served)
}

// waitBackedOff waits until sample-controller has tried to read Foos a few times: its tries
// are the further apart the longer it lasts.
func (p *program) waitBackedOff() {
	p.t.Helper()
	waitUntil(p.t, "sample-controller has tried 5 times", func(context.Context) error {
		select {
		case <-p.done:
			return nil
		default:
		}
		if n := strings.Count(p.log.String(), "Failed to watch"); n < 5 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
}

// stockServes says how long after something has happened sample-controller makes the
// Deployment of a Foo.
func stockServes(t *testing.T, p *program, ns, name, what string, since time.Time) string {
	t.Helper()
	select {
	case <-p.done:
		return "sample-controller ends: " + p.cmd.ProcessState.String()
	default:
	}
	waitDeployment(t, ns, name)
	took := time.Since(since)
	errs := strings.Count(p.log.String(), "\nE")
	p.signal(syscall.SIGKILL)
	<-p.done
	return fmt.Sprintf("sample-controller serves %s after %s; %d error lines", seconds(took), what, errs)
}

// TestFaultAnAPIIsDeletedAndRecreated takes the CRD of 100 Foos away from a running daemon
// and brings it back, after a while and at once.
func TestFaultAnAPIIsDeletedAndRecreated(t *testing.T) {
	peer := ofPeer(t, stockLosesAPI)

	freeLease(t)
	restoreCRDs(t)
	r := startReplica(t).ready()
	ns := newNamespace(t)
	manyFoos(t, ns)
	other := newNamespace(t)
	var figures []string
	for _, quick := range []bool{false, true} {
		before := len(r.log.String())
		began := time.Now()
		var served time.Time
		if quick {
			kubectl(t, "delete", "crd", foos.crd(), "--wait=false")
			waitUntil(t, "the CRD can be made anew", func(ctx context.Context) error {
				_, err := anyKind.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Get(ctx, foos.crd(), metav1.GetOptions{})
				if err == nil {
					return errors.New("it is still there")
				}
				if !apierrors.IsNotFound(err) {
					return err
				}
				return nil
			})
			served = foos.installCRD(t)
		} else {
			kubectl(t, "delete", "crd", foos.crd(), "--wait", "--timeout=60s")
			r.waitState(foos.controller, "WaitingForAPI", foos.crd())
			icecreams.create(t, other, "meanwhile", 1)
			icecreams.waitReady(t, other, "meanwhile", 1)
			served = foos.installCRD(t)
		}
		running := max(0, r.waitState(foos.controller, "Running").Sub(served))
		wantSoon(t, "to run after the CRD was served", running, soon)

		uids := createMany(t, ns)
		created := time.Now()
		waitTruth(t, ns, uids)
		right := time.Since(created)
		wantSoon(t, "to tell the truth about all objects", right, soon)
		// What is of the old objects goes by garbage collection, which needs up to 30 s to
		// learn of a new CRD.
		waitReadyAll(t, ns, uids)
		wantNothingWrong(t, ns, began)
		lines, took := errorLines(r.log.String()[before:]), time.Since(began)
		if most := 1 + int(took/(10*time.Second)); lines > most {
			t.Errorf("%d error lines in %v, want at most %d", lines, took, most)
		}
		what := "slowly"
		if quick {
			what = "at once"
		}
		figures = append(figures, fmt.Sprintf("%s: runs after %s, 100 statuses true %s after the last was made, %d error lines", what, seconds(running), seconds(right), lines))
	}
	r.stop()
	reportFault(t, faultRow{ID: "O2", Fault: "a CRD is deleted and re-created, with 100 objects", Ours: strings.Join(figures, "; "), Peer: peer})
}

// manyFoos makes the Foos of a fault, and waits until they are ready.
func manyFoos(t *testing.T, ns string) {
	t.Helper()
	waitReadyAll(t, ns, createMany(t, ns))
}

// createMany makes the Foos of a fault, and returns their UIDs by name.
func createMany(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for i := range objectsOfFault {
		name := fmt.Sprintf("foo-%d", i)
		waitUntil(t, "a Foo can be made", func(ctx context.Context) error { // a new CRD accepts none at first
			foo, err := foos.tryDeclare(ctx, ns, name, samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](0)})
			if err == nil {
				uids[name] = foo.UID
			}
			return err
		})
	}
	return uids
}

// waitTruth waits until the status of each Foo says something true: that it is ready, or
// that a Deployment of an earlier Foo is in its way.
func waitTruth(t *testing.T, ns string, uids map[string]types.UID) {
	t.Helper()
	waitEach(t, ns, uids, "tells the truth", func(ready, reason string) bool {
		return ready == "True" || reason == "WaitingForDeletion" || reason == "Progressing"
	})
}

func waitReadyAll(t *testing.T, ns string, uids map[string]types.UID) {
	t.Helper()
	waitEach(t, ns, uids, "is ready", func(ready, _ string) bool { return ready == "True" })
}

// waitEach waits until the condition Ready of each Foo, for its present generation, is as
// it should be.
func waitEach(t *testing.T, ns string, uids map[string]types.UID, what string, is func(ready, reason string) bool) {
	t.Helper()
	waitUntil(t, "each Foo "+what, func(ctx context.Context) error {
		list, err := sample.SamplecontrollerV1alpha1().Foos(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != len(uids) {
			return fmt.Errorf("there are %d Foos, want %d", len(list.Items), len(uids))
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

// wantNothingWrong checks that the controller made each Deployment at most once since a
// moment, and changed or deleted none.
func wantNothingWrong(t *testing.T, ns string, since time.Time) {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.ByUserAgent(foos.controller), cluster.InNamespace(ns), func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(since)
	})
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]int{}
	for _, event := range events {
		switch call := cluster.Call(event); {
		case event.ResponseStatus == nil || event.ResponseStatus.Code >= 300:
		case call == "create deployments":
			created[event.ObjectRef.Name]++
		case call == "update deployments/scale" || call == "patch deployments" || call == "delete deployments":
			t.Errorf("%s %s", call, event.ObjectRef.Name)
		}
	}
	for name, n := range created {
		if n > 1 {
			t.Errorf("Deployment %s was created %d times", name, n)
		}
	}
}

// errorLines counts the lines of errors.
func errorLines(log string) int {
	n := 0
	for line := range strings.Lines(log) {
		if line[0] == 'E' {
			n++
		}
	}
	return n
}

// stockLosesAPI has sample-controller lose its CRD and get it back, and says what comes of
// it.
func stockLosesAPI(t *testing.T) string {
	t.Helper()
	ns := newNamespace(t)
	restoreCRDs(t)
	p := startSampleController(t)
	foos.create(t, ns, "a", 0)
	waitDeployment(t, ns, "a")
	kubectl(t, "delete", "crd", foos.crd(), "--wait", "--timeout=60s")
	p.waitBackedOff()
	served := foos.installCRD(t)
	foos.create(t, ns, "b", 0)
	return stockServes(t, p, ns, "b", "the CRD is served", served)
}

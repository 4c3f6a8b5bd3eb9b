// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// anotherDaemon is the first argument with which the program of the tests is the daemon.
const anotherDaemon = "another-daemon"

func runAnotherDaemon(args []string) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	os.Exit(manager.Execute(ctx, app.Program(), args))
}

// startAnotherDaemon starts the daemon as a process of its own. The returned function
// asks it to end and wants it to, in order.
func startAnotherDaemon(t *testing.T, flags ...string) (stop func()) {
	t.Helper()
	return startLoggingTo(t, processLog(t), append(flags, "-v=2")...)
}

// startLoggingTo does the same with a daemon whose log is written to log.
func startLoggingTo(t *testing.T, log io.Writer, flags ...string) (stop func()) {
	t.Helper()
	kubeconfig, err := shared.Cluster().ServiceAccountKubeconfig(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return startProcess(t, log, exec.Command(os.Args[0], slices.Concat([]string{anotherDaemon, "--secure-port=0"}, daemonFlags(kubeconfig), flags)...))
}

// processLog returns what the log of a process is written to. It is shown if the test fails.
func processLog(t *testing.T) io.Writer {
	var log bytes.Buffer
	t.Cleanup(func() { // after the process has ended
		if t.Failed() {
			t.Logf("log of the other process:\n%s", log.String())
		}
	})
	return &log
}

// startProcess starts a program. stop sends SIGTERM and fails the test unless the program
// exits with 0.
func startProcess(t *testing.T, log io.Writer, cmd *exec.Cmd) (stop func()) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	running := true
	t.Cleanup(func() {
		if running {
			_ = cmd.Process.Kill() // it may have ended
			<-ended
		}
	})
	return func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			running = false
			if err != nil {
				t.Fatalf("the program ended with: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("the program has not ended for 2 min")
		}
	}
}

// TestALateLeaderUndoesNothing has a daemon lead that has not yet seen what was wished
// for while another led, but has seen what that has done for it.
func TestALateLeaderUndoesNothing(t *testing.T) {
	all := sideBySide(t)
	var paths []string
	for _, k := range all {
		paths = append(paths, "/apis/"+k.apiVersion()+"/"+k.Resource)
	}
	stop := startAnotherDaemon(t)
	for _, k := range all {
		k.Create(t, k.ns, "scaled", 1)
		k.Create(t, k.ns, "renamed", 1)
		k.Create(t, k.ns, "back", 2)
		for _, name := range []string{"scaled", "renamed", "back"} {
			k.waitCondition(t, k.ns, name, "Reconciling", "Progressing")
		}
		// Neither of the two Deployments goes that each serve a little.
		k.serveOne(t, "back", "back", 1)
		k.wish(t, "back", `{"deploymentName":"there"}`)
		k.waitDeployment(t, "there", true)
		k.serveOne(t, "back", "there", 2)
	}
	delayer := clustertest.StartDelayer(t, shared.Cluster(), paths...)
	// Without the aggregator: were a status refused to that, nobody would look at the object.
	startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace), "--controllers="+foos.Controller+","+icecreams.Controller,
		foos.oneWorker(), icecreams.oneWorker())

	release := delayer.Hold()
	before := map[string]map[string]int{}
	for _, k := range all {
		k.wish(t, "scaled", `{"replicas":3}`)
		k.wish(t, "renamed", `{"deploymentName":"other"}`)
		k.wish(t, "back", `{"deploymentName":"back"}`)
		k.waitReplicas(t, k.ns, "scaled", 3)
		k.waitDeployment(t, "other", true)
		k.waitDeployment(t, "renamed", false)
		k.waitAvailable(t, "back", 3)
		before[k.Kind] = k.looks(t)
	}
	stop()
	for _, k := range all {
		beReady(t, k.ns, "there") // so that "back" would be what a rename has left
	}
	for _, k := range all {
		clustertest.WaitUntil(t, "the daemon has found its cache of each "+k.Kind+" late", func(context.Context) error {
			looks := k.looks(t)
			for _, name := range []string{"scaled", "renamed", "back"} {
				if looks[name] == before[k.Kind][name] {
					return fmt.Errorf("not that of %s: %v, before %v", name, looks, before[k.Kind])
				}
			}
			return nil
		})
	}
	release()
	for _, k := range all {
		k.Create(t, k.ns, "last", 1) // when it is served, the cache has all that there was before
		k.waitCondition(t, k.ns, "last", "Reconciling", "Progressing")
	}
	time.Sleep(time.Second) // in which nothing more is to be written
	for _, k := range all {
		k.wantDeploymentWrites(t, map[string]int{
			"create scaled": 1, "patch scaled": 1,
			"create renamed": 1, "create other": 1, "delete renamed": 1,
			"create back": 1, "create there": 1,
			"create last": 1,
		})
		if got := getDeployment(t, k.ns, "scaled").Generation; got != 2 {
			t.Errorf("the Deployment of a %s that was scaled once is in generation %d, want 2", k.Kind, got)
		}
		k.wish(t, "scaled", `{"replicas":5}`)
		k.waitReplicas(t, k.ns, "scaled", 5)
	}
}

// TestALateLeaderCreatesNothingThatWasRenamedAway makes a daemon lead whose cache is late:
// it has objects that were never served under the names of before a rename.
func TestALateLeaderCreatesNothingThatWasRenamedAway(t *testing.T) {
	all := sideBySide(t)
	var paths []string
	for _, k := range all {
		paths = append(paths, "/apis/"+k.apiVersion()+"/"+k.Resource)
		k.Create(t, k.ns, "a", 1)
	}
	stop := startAnotherDaemon(t, "--controllers="+aggregator) // which leads, and serves none
	for _, k := range all {
		k.waitPods(t, k.ns, "a", "none")
	}
	delayer := clustertest.StartDelayer(t, shared.Cluster(), paths...)
	startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace), "--controllers="+foos.Controller+","+icecreams.Controller)
	release := delayer.Hold()
	for _, k := range all {
		k.wish(t, "a", `{"deploymentName":"other"}`)
	}
	stop()
	for _, k := range all {
		clustertest.WaitUntil(t, "the daemon has looked at the "+k.Kind, func(context.Context) error {
			if k.looks(t)["a"] == 0 {
				return errors.New("it has not")
			}
			return nil
		})
	}
	release()
	for _, k := range all {
		k.waitDeployment(t, "other", true)
		k.wantDeploymentWrites(t, map[string]int{"create other": 1})
	}
}

// wish changes the spec of an object.
func (k inNamespace) wish(t *testing.T, name, spec string) {
	t.Helper()
	if err := k.TryPatch(t.Context(), k.ns, name, `{"spec":`+spec+`}`); err != nil {
		t.Fatal(err)
	}
}

// serveOne has one replica of the object's Deployment be available, and waits until its
// status tells, in this generation.
func (k inNamespace) serveOne(t *testing.T, name, deployment string, generation int64) {
	t.Helper()
	d := getDeployment(t, k.ns, deployment)
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":2,"updatedReplicas":2,"readyReplicas":1,"availableReplicas":1}}`, d.Generation)
	if _, err := shared.Kube().AppsV1().Deployments(k.ns).Patch(t.Context(), deployment, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	k.waitAvailable(t, name, generation)
}

// waitAvailable waits until the status of an object in this generation tells that one
// replica is available.
func (k inNamespace) waitAvailable(t *testing.T, name string, generation int64) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("one replica of %s %s is available", k.Kind, name), func(ctx context.Context) error {
		object, err := k.Get(ctx, k.ns, name)
		if err == nil && (object.Status.AvailableReplicas != 1 || object.Status.ObservedGeneration != generation) {
			err = fmt.Errorf("status %+v", object.Status)
		}
		return err
	})
}

// waitDeployment waits until a Deployment is there, or is not.
func (k inNamespace) waitDeployment(t *testing.T, name string, there bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("Deployment %s is there: %v", name, there), func(ctx context.Context) error {
		_, err := shared.Kube().AppsV1().Deployments(k.ns).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && !there:
			return nil
		case err == nil && !there:
			return errors.New("it is there")
		default:
			return err
		}
	})
}

// looks counts how often the kind's controller has looked at each object, beside its
// cache.
func (k inNamespace) looks(t *testing.T) map[string]int {
	t.Helper()
	events, err := shared.Cluster().AuditEvents(cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.ns))
	if err != nil {
		t.Fatal(err)
	}
	looks := map[string]int{}
	for _, event := range events {
		if cluster.Call(event) == "list "+k.Resource {
			looks[event.ObjectRef.Name]++
		}
	}
	return looks
}

// wantDeploymentWrites compares how often the kind's controller has written each
// Deployment, by verb and name.
func (k inNamespace) wantDeploymentWrites(t *testing.T, want map[string]int) {
	t.Helper()
	events, err := shared.Cluster().AuditEvents(cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.ns), isWrite)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, event := range events {
		if event.ObjectRef.Resource == "deployments" && event.ResponseStatus.Code < 300 {
			got[event.Verb+" "+event.ObjectRef.Name]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected writes by %s (-want +got):\n%s", k.Controller, diff)
	}
}

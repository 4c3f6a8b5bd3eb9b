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

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// anotherDaemon is the first argument that makes the test binary run the daemon.
const anotherDaemon = "another-daemon"

func runAnotherDaemon(args []string) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	os.Exit(manager.Execute(ctx, app.Program(), args))
}

// startAnotherDaemon starts the daemon as a separate process. stop stops it and checks that
// it ends without an error.
func startAnotherDaemon(t *testing.T, flags ...string) (stop func()) {
	t.Helper()
	return startLoggingTo(t, processLog(t), append(flags, "-v=2")...)
}

// startLoggingTo is like startAnotherDaemon with another destination of the log.
func startLoggingTo(t *testing.T, log io.Writer, flags ...string) (stop func()) {
	t.Helper()
	kubeconfig, err := shared.Cluster().ServiceAccountKubeconfig(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return startProcess(t, log, exec.Command(os.Args[0], slices.Concat([]string{anotherDaemon, "--secure-port=0"}, daemonFlags(kubeconfig), flags)...))
}

// processLog returns a writer for the log of a process. The log is shown if the test fails.
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
			t.Fatal("the program did not end within 2 min")
		}
	}
}

// TestNewLeaderWithStaleCacheUndoesNothing starts a new leader whose cache lacks the
// changes of objects under its predecessor, but has the predecessor's writes for them.
func TestNewLeaderWithStaleCacheUndoesNothing(t *testing.T) {
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
		k.changeSpec(t, "back", `{"deploymentName":"there"}`)
		k.waitReplicas(t, k.ns, "there", 2)
		k.waitCondition(t, k.ns, "back", "Reconciling", "Progressing")
	}
	delayer := clustertest.StartDelayer(t, shared.Cluster(), paths...)
	// Without the aggregator: a refused write of the aggregator would pause the object.
	startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace), "--controllers="+foos.Controller+","+icecreams.Controller,
		foos.oneWorker(), icecreams.oneWorker())

	release := delayer.Hold()
	before := map[string]map[string]int{}
	for _, k := range all {
		k.changeSpec(t, "scaled", `{"replicas":3}`)
		k.changeSpec(t, "renamed", `{"deploymentName":"other"}`)
		k.changeSpec(t, "back", `{"deploymentName":"back"}`)
		k.waitReplicas(t, k.ns, "scaled", 3)
		k.waitReplicas(t, k.ns, "other", 1)
		k.waitCondition(t, k.ns, "back", "Reconciling", "Progressing")
		// A user deletes one former Deployment and scales down the other one.
		kubectl(t, "-n", k.ns, "delete", "deployment", "renamed")
		kubectl(t, "-n", k.ns, "scale", "deployment", "there", "--replicas=0")
		before[k.Kind] = k.confirmations(t)
	}
	stop()
	for _, k := range all {
		clustertest.WaitUntil(t, "the daemon has found its cache of each "+k.Kind+" stale", func(context.Context) error {
			confirmations := k.confirmations(t)
			for _, name := range []string{"scaled", "renamed", "back"} {
				if confirmations[name] == before[k.Kind][name] {
					return fmt.Errorf("not for %s: %v, before %v", name, confirmations, before[k.Kind])
				}
			}
			return nil
		})
	}
	release()
	for _, k := range all {
		k.Create(t, k.ns, "last", 1) // once it is Ready, the cache has everything from before
		k.waitCondition(t, k.ns, "last", "Reconciling", "Progressing")
	}
	time.Sleep(time.Second) // no more writes may follow
	for _, k := range all {
		k.wantDeploymentWrites(t, map[string]int{
			"create scaled": 1, "patch scaled": 1,
			"create renamed": 1, "create other": 1,
			"create back": 1, "create there": 1,
			"create last": 1,
		})
		if got := getDeployment(t, k.ns, "scaled").Generation; got != 2 {
			t.Errorf("the Deployment of a %s scaled once has generation %d, want 2", k.Kind, got)
		}
		k.changeSpec(t, "scaled", `{"replicas":5}`)
		k.waitReplicas(t, k.ns, "scaled", 5)
	}
}

// TestNewLeaderWithStaleCacheRecreatesNothing starts a leader with a stale cache: its
// objects never had a Deployment, and have their names from before a rename.
func TestNewLeaderWithStaleCacheRecreatesNothing(t *testing.T) {
	all := sideBySide(t)
	var paths []string
	for _, k := range all {
		paths = append(paths, "/apis/"+k.apiVersion()+"/"+k.Resource)
		k.Create(t, k.ns, "a", 1)
	}
	stop := startAnotherDaemon(t, "--controllers="+aggregator) // it leads, but creates no Deployments
	for _, k := range all {
		k.waitPods(t, k.ns, "a", "none")
	}
	delayer := clustertest.StartDelayer(t, shared.Cluster(), paths...)
	startDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, namespace, namespace), "--controllers="+foos.Controller+","+icecreams.Controller)
	release := delayer.Hold()
	for _, k := range all {
		k.changeSpec(t, "a", `{"deploymentName":"other"}`)
	}
	stop()
	for _, k := range all {
		clustertest.WaitUntil(t, "the daemon has confirmed the "+k.Kind, func(context.Context) error {
			if k.confirmations(t)["a"] == 0 {
				return errors.New("not confirmed")
			}
			return nil
		})
	}
	release()
	for _, k := range all {
		k.waitReplicas(t, k.ns, "other", 1)
		k.wantDeploymentWrites(t, map[string]int{"create other": 1})
	}
}

// changeSpec changes the spec of an object.
func (k inNamespace) changeSpec(t *testing.T, name, spec string) {
	t.Helper()
	if err := k.TryPatch(t.Context(), k.ns, name, `{"spec":`+spec+`}`); err != nil {
		t.Fatal(err)
	}
}

// confirmations counts the reads of each object by the kind's controller that confirm its cache.
func (k inNamespace) confirmations(t *testing.T) map[string]int {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.ns))
	confirmations := map[string]int{}
	for _, event := range events {
		if cluster.Call(event) == "list "+k.Resource {
			confirmations[event.ObjectRef.Name]++
		}
	}
	return confirmations
}

// wantDeploymentWrites compares the writes of Deployments by the kind's controller, by verb
// and name.
func (k inNamespace) wantDeploymentWrites(t *testing.T, want map[string]int) {
	t.Helper()
	events := shared.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.ns), isWrite)
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

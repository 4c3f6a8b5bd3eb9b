// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"

	"samplecontroller.io/controller-manager/leadership"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestOnlyLeaderExecutesCommands lets a program of the library execute a command in a Pod, attach
// to it and forward a port, as client-go does it: with a WebSocket that is opened by GET. The Pod
// does not exist, so the API server answers at once.
func TestOnlyLeaderExecutesCommands(t *testing.T) {
	ns := framework.NewNamespace(t)
	gate := leadership.NewGate(20 * time.Second)
	config := rest.CopyConfig(framework.Cluster().Config())
	config.UserAgent = "program/" + ns
	config.Wrap(gate.Wrap)

	for call, err := range openStreams(t, config, ns) {
		if !errors.Is(err, leadership.ErrNotLeading) {
			t.Errorf("%s by a process that does not lead: %v, want it refused", call, err)
		}
	}
	lead := func(*leadership.Term) error {
		for call, err := range openStreams(t, config, ns) {
			if err == nil || errors.Is(err, leadership.ErrNotLeading) {
				t.Errorf("%s by the leader: %v, want an answer of the API server", call, err)
			}
		}
		return nil
	}
	if err := leadership.RunWithoutElection(t.Context(), gate, lead); err != nil {
		t.Fatal(err)
	}

	sent := map[string]int{}
	for _, event := range framework.Audit(t,
		func(event auditv1.Event) bool { return event.UserAgent == config.UserAgent }) {
		sent[cluster.Call(event)]++
	}
	want := map[string]int{"get pods/exec": 1, "get pods/attach": 1, "get pods/portforward": 1}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("requests that the API server received, all of the leader (-want +got):\n%s", diff)
	}
}

// openStreams tries each kind of stream to a Pod, and returns the errors.
func openStreams(t *testing.T, config *rest.Config, ns string) map[string]error {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	to := func(call string) *rest.Request {
		return client.Get().Namespace(ns).Resource("pods").Name("db").SubResource(call)
	}
	errs := map[string]error{}
	for _, call := range []string{"exec", "attach"} {
		executor, err := remotecommand.NewWebSocketExecutor(config, "GET", to(call).Param("stdout", "true").URL().String())
		if err != nil {
			t.Fatal(err)
		}
		errs[call] = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
	}
	dialer, err := portforward.NewSPDYOverWebsocketDialer(to("portforward").URL(), config)
	if err != nil {
		t.Fatal(err)
	}
	_, _, errs["portforward"] = dialer.Dial(portforward.PortForwardProtocolV1Name)
	return errs
}

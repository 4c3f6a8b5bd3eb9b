// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
)

func TestWhatTheRulesAllowToWriteIsCounted(t *testing.T) {
	got := map[string][]writes.Write{}
	for _, d := range NewRegistry().Descriptors() {
		got[d.Name] = writesAllowedBy(d.Rules)
	}
	deployments := []writes.Write{{Verb: "create", Resource: "deployments.apps"}, {Verb: "patch", Resource: "deployments.apps"}, {Verb: "delete", Resource: "deployments.apps"}, {Verb: "update", Resource: "deployments/scale.apps"}}
	fooStatus := writes.Write{Verb: "patch", Resource: "foos/status.samplecontroller.k8s.io"}
	icecreamStatus := writes.Write{Verb: "patch", Resource: "icecreams/status.controller.nicoleh.io"}
	want := map[string][]writes.Write{
		"foo-controller":               append([]writes.Write{fooStatus}, deployments...),
		"icecream-controller":          append([]writes.Write{icecreamStatus}, deployments...),
		"status-aggregator-controller": {fooStatus, icecreamStatus},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
}

func TestTheClientsOfAControllerShareATransport(t *testing.T) {
	c := newClients(&config.CompletedConfig{}, nil)
	first := c.writesOf("a-controller")
	if c.writesOf("a-controller") != first {
		t.Error("a controller has two transports, want one")
	}
	if c.writesOf("b-controller") == first {
		t.Error("two controllers share a transport")
	}
}

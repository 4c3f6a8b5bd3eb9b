// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/managertest"
)

func TestGreeting(t *testing.T) {
	run(t, func(t *testing.T, e *managertest.Env) {
		e.InstallCRDs("greetings.yaml")
		e.Create(&Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: "quota", Name: "a"}, Spec: GreetingSpec{Name: "Ann"}})
		e.Settle()
		managertest.Update(e, "quota", "a", func(g *Greeting) { g.Labels = map[string]string{"of": "others"} })
		e.Settle()
		e.LoseLead()
		e.Lead()
		e.Settle()
		g, _ := managertest.Get[*Greeting](e, "quota", "a")
		if writes := e.Writes(); g.Status.Message != "Hello, Ann!" || !slices.Equal(writes, []string{"patch greetings/status.example.com quota/a"}) {
			t.Errorf("message %q, writes %q", g.Status.Message, writes)
		}
	})
}

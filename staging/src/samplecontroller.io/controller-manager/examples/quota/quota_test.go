// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/controller-manager/managertest"
)

// run runs a test in memory, or on the API server of the kubeconfig in TEST_KUBECONFIG.
func run(t *testing.T, body func(*testing.T, *managertest.Env)) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("TEST_KUBECONFIG"))
	if os.Getenv("TEST_KUBECONFIG") == "" {
		managertest.Run(t, program(), body)
	} else if err != nil {
		t.Fatal(err)
	} else {
		managertest.RunOn(t, config, program(), body, "--namespace=quota")
	}
}

func TestQuota(t *testing.T) {
	run(t, func(t *testing.T, e *managertest.Env) {
		e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "quota", Name: "team"}, Data: map[string]string{"pods": "3"}})
		for _, step := range []struct {
			when           string
			change         func(*corev1.ConfigMap)
			pods           string // "": there is no quota
			writes, events []string
		}{
			{"without the label", func(*corev1.ConfigMap) {}, "", nil, nil},
			{"labelled", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"example.com/quota": "true"} }, "3", []string{"create resourcequotas quota/team"}, nil},
			{"more Pods", func(c *corev1.ConfigMap) { c.Data["pods"] = "4" }, "4", []string{"patch resourcequotas quota/team"}, nil},
			{"other data", func(c *corev1.ConfigMap) { c.Data["color"] = "blue" }, "4", nil, nil},
			{"not a number", func(c *corev1.ConfigMap) { c.Data["pods"] = "" }, "4", nil, []string{"Warning BadData quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"}},
			{"label removed", func(c *corev1.ConfigMap) { c.Labels = nil }, "", []string{"delete resourcequotas quota/team"}, nil},
		} {
			managertest.Update(e, "quota", "team", step.change)
			e.Settle()
			pods := ""
			if quota, ok := managertest.Get[*corev1.ResourceQuota](e, "quota", "team"); ok {
				pods = quota.Spec.Hard.Pods().String()
			}
			if writes, events := e.Writes(), e.Events(); pods != step.pods || !slices.Equal(writes, step.writes) || !slices.Equal(events, step.events) {
				t.Errorf("%s: %q Pods, writes %q, events %q, want %q, %q, %q", step.when, pods, writes, events, step.pods, step.writes, step.events)
			}
		}
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/managertest"
)

func TestQuota(t *testing.T) {
	run(t, func(t *testing.T, e *managertest.Env) {
		e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "quota", Name: "team"}, Data: map[string]string{"pods": "3"}})
		for _, step := range []struct {
			when   string
			change func(*corev1.ConfigMap)
			want   string // Pods, writes and Events
		}{
			{"without the label", func(*corev1.ConfigMap) {}, `none [] []`},
			{"labeled", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"example.com/quota": "true"} }, `3 ["create resourcequotas quota/team"] []`},
			{"more Pods", func(c *corev1.ConfigMap) { c.Data["pods"] = "4" }, `4 ["patch resourcequotas quota/team"] []`},
			{"other data", func(c *corev1.ConfigMap) { c.Data["color"] = "blue" }, `4 [] []`},
			{"not a number", func(c *corev1.ConfigMap) { c.Data["pods"] = "" }, `4 [] ["Warning BadData quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"]`},
			{"label removed", func(c *corev1.ConfigMap) { c.Labels = nil }, `none ["delete resourcequotas quota/team"] []`},
		} {
			managertest.Update(e, "quota", "team", step.change)
			e.Settle()
			if got := fmt.Sprintf("%s %q %q", hardPods(e), e.Writes(), e.Events()); got != step.want {
				t.Errorf("%s: %s, want %s", step.when, got, step.want)
			}
		}
	})
}

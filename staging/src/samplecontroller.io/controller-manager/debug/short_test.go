// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import "testing"

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		`foos.samplecontroller.k8s.io is forbidden: User "system:serviceaccount:ns:scm" cannot list resource "foos" in API group "samplecontroller.k8s.io" in the namespace "default"`:              "403: may not list foos in default",
		`reading Foos: foos.samplecontroller.k8s.io "a" is forbidden: User "u" cannot patch resource "foos/status" in API group "samplecontroller.k8s.io" in the namespace "default"; again in 10s`: "reading Foos: 403: may not patch foos/status in default; again in 10s",
		`pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope`:                                                                                              "403: may not list pods in all namespaces",
		`forbidden: User "u" cannot get path "/metrics"`:                                                                                `forbidden: 403: may not get /metrics`,
		`deployments.apps "c" is forbidden: exceeded quota: none`:                                                                       `deployments.apps "c" is forbidden: exceeded quota: none`,
		`pods "x" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "a": RBAC: role "x" not found`: `403: may not get pods/log in a: RBAC: role "x" not found`,
	} {
		if got := Short(text); got != want {
			t.Errorf("Short(%q) = %q, want %q", text, got, want)
		}
	}
}

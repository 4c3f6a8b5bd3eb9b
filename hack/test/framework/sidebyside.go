// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// InNamespace is a kind with a namespace for this test only.
type InNamespace struct {
	Kind
	Ns string
}

// ChangeSpec changes the spec of an object.
func (k InNamespace) ChangeSpec(t *testing.T, name, spec string) {
	t.Helper()
	if err := k.TryPatch(t.Context(), k.Ns, name, `{"spec":`+spec+`}`); err != nil {
		t.Fatal(err)
	}
}

// Confirmations counts the reads of each object by the kind's controller that confirm its cache.
func (k InNamespace) Confirmations(t *testing.T) map[string]int {
	t.Helper()
	events := Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.Ns))
	confirmations := map[string]int{}
	for _, event := range events {
		if cluster.Call(event) == "list "+k.Resource {
			confirmations[event.ObjectRef.Name]++
		}
	}
	return confirmations
}

// WantDeploymentWrites compares the writes of Deployments by the kind's controller, by verb
// and name.
func (k InNamespace) WantDeploymentWrites(t *testing.T, want map[string]int) {
	t.Helper()
	events := Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.Ns), IsWrite)
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

// SideBySide returns each kind with a namespace.
func SideBySide(t *testing.T) (all []InNamespace) {
	t.Helper()
	for _, k := range Kinds {
		all = append(all, InNamespace{k, NewNamespace(t)})
	}
	return all
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestInvalidStatusIsRejected has a controller that counts more ports than the CRD allows.
func TestInvalidStatusIsRejected(t *testing.T) {
	const ns, write = "ensure-invalid", "patch widgets/status.test.example.com ensure-invalid/a"
	runEnsure(t, ns, func(t *testing.T, e *Env) {
		e.InstallCRDs("testdata/widgets.yaml")
		e.Create(owner(ns, map[string]string{"image": "v1"}))
		e.Settle()
		expectWidget(e, ns, "status", `{"image":"v1","ports":0}`)
		e.Writes()
		ports := strings.Repeat(`{"containerPort":1},`, 10) + `{"containerPort":1}`
		patchWidget(e, ns, `{"spec":{"containers":[{"name":"app","image":"v1","ports":[`+ports+`]}]}}`)
		e.Settle()
		if writes := e.Writes(); slices.Contains(writes, write) || !slices.Contains(writes, write+": Invalid") {
			t.Errorf("writes %q, want only invalid ones", writes)
		}
		expectWidget(e, ns, "status", `{"image":"v1","ports":0}`)
	})
}

func TestGarbageIsCollected(t *testing.T) {
	Run(t, ensureProgram(), func(t *testing.T, e *Env) {
		e.Create(owner("ns", map[string]string{"TCP": "53"}))
		e.Settle()
		e.CollectGarbage()
		if _, ok := Get[*corev1.Service](e, "ns", "a"); !ok {
			t.Error("the Service is gone before its owner")
		}
		e.Delete(owner("ns", nil))
		e.CollectGarbage()
		if _, ok := Get[*corev1.Service](e, "ns", "a"); ok {
			t.Error("the Service is still there")
		}
	})
}

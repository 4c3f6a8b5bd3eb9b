// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// probeInterval is the time between two tries to write a status that is not served, as the README of the
// library says.
const probeInterval = 30 * time.Second

// statusWrites returns how many writes of the kind's status by a controller got this code.
func statusWrites(t *testing.T, ns string, k framework.Kind, controller string, code int32) int {
	t.Helper()
	return len(framework.Audit(t, cluster.ByUserAgent(controller), cluster.InNamespace(ns),
		func(event auditv1.Event) bool {
			return cluster.Call(event) == "patch "+k.Resource+"/status" && event.ResponseStatus.Code == code
		}))
}

// TestFaultStatusSubresourceMissing serves Foos and Icecreams by CRDs without the status
// subresource, as sample-controller's is. The API server then answers a status write as if the
// object did not exist.
func TestFaultStatusSubresourceMissing(t *testing.T) {
	const (
		objects = 20
		workers = 10 // of each controller; each may find out for itself
	)
	framework.FreeLease(t)
	framework.RestoreCRDs(t)
	ns := framework.NewNamespace(t)
	for _, k := range framework.Kinds {
		framework.Kubectl(t, "patch", "crd", k.CRD(), "--type=json", `--patch=[{"op":"remove","path":"/spec/versions/0/subresources"}]`)
	}
	begin := time.Now()
	r := framework.StartReplica(t).Ready()
	for _, k := range framework.Kinds {
		for i := range objects {
			k.Create(t, ns, fmt.Sprintf("%s-%d", k.Singular, i), 1)
		}
		for i := range objects {
			framework.WaitDeployment(t, ns, fmt.Sprintf("%s-%d", k.Singular, i))
		}
	}
	const line = `"Subresource is not served, pausing its writes: apply the CRDs of this version"`
	controllers := map[framework.Kind][]string{}
	for _, k := range framework.Kinds {
		controllers[k] = []string{k.Controller, framework.Aggregator}
		for _, controller := range controllers[k] {
			r.WaitState(controller, "Degraded", "is not served: apply the CRDs of this version")
		}
	}

	for _, k := range framework.Kinds {
		for _, controller := range controllers[k] {
			clustertest.WaitUntil(t, controller+" tries to write a status of a "+k.Kind, func(context.Context) error {
				if statusWrites(t, ns, k, controller, http.StatusNotFound) == 0 {
					return errors.New("not yet")
				}
				return nil
			})
		}
	}
	r.WaitLogged(4, line)
	// Deployments are still kept.
	for _, k := range framework.Kinds {
		framework.Kubectl(t, "-n", ns, "scale", "deployment", k.Singular+"-0", "--replicas=3")
		clustertest.WaitUntil(t, "the replicas are corrected", func(context.Context) error {
			if got := framework.Kubectl(t, "-n", ns, "get", "deployment", k.Singular+"-0", "-o", "jsonpath={.spec.replicas}"); got != "1" {
				return fmt.Errorf("%s replicas", got)
			}
			return nil
		})
	}
	// What it costs is the first writes, and then one probe in a while. A loop would be at thousands by now.
	for _, k := range framework.Kinds {
		for _, controller := range controllers[k] {
			n := statusWrites(t, ns, k, controller, http.StatusNotFound)
			if most := workers + 1 + int(time.Since(begin)/probeInterval); n > most {
				t.Errorf("%s tried to write the status of %ss %d times, want at most %d", controller, k.Kind, n, most)
			}
		}
	}
	if n := strings.Count(r.Log.String(), line); n != 4 {
		t.Errorf("%d log lines about a subresource, want one for each kind by each of its two controllers", n)
	}

	served := installCRD(t, framework.Foos)
	var took time.Duration
	for _, k := range framework.Kinds {
		for i := range objects {
			k.WaitReady(t, ns, fmt.Sprintf("%s-%d", k.Singular, i), 1)
		}
		took = time.Since(served)
		for i := range objects {
			k.WaitPodsReported(t, ns, fmt.Sprintf("%s-%d", k.Singular, i), 1)
		}
		for _, controller := range controllers[k] {
			r.WaitState(controller, "Running")
		}
	}
	framework.WantSoon(t, "all statuses written after the CRDs were applied", took, 2*probeInterval+soon)
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "O1b", Fault: "a CRD has no status subresource",
		Ours: fmt.Sprintf("Deployments are kept; one log line per controller and kind, Degraded, one status write per %v; all Ready %s after the CRD has it",
			probeInterval, framework.Seconds(took)),
		Peer: "not run",
	})
}

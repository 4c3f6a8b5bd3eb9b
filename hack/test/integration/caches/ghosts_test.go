// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestObjectsOfDeletedCRDDoNotWait deletes and re-creates the CRD of Foos while a write
// blocks the only worker and other Foos are queued. The deleted Foos must not count as
// queued.
func TestObjectsOfDeletedCRDDoNotWait(t *testing.T) {
	framework.OwnAPIServer(t)
	ns := framework.NewNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, framework.Cluster(), nil)
	server := framework.StartDaemon(t, "--kubeconfig="+proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName),
		"--controllers="+framework.Foos.Controller, framework.Foos.OneWorker(),
		// The write must not time out on a busy machine.
		"--leader-elect-lease-duration=5m", "--leader-elect-renew-deadline=4m", "--write-timeout=2m", "--sync-timeout=2m")
	admin := framework.TokenWith(t, framework.NewNamespace(t), framework.NewClusterRole(t, framework.Everything))
	waiting := func() float64 {
		return server.Value(admin, fmt.Sprintf("sample_controller_manager_oldest_key_seconds{controller=%q}", framework.Foos.Controller))
	}
	served := func(want float64) {
		t.Helper()
		clustertest.WaitUntil(t, fmt.Sprintf("the metric of served resources is %v", want), func(context.Context) error {
			got := server.Value(admin, fmt.Sprintf("sample_controller_manager_resource_served{resource=%q}", framework.Foos.CRD()))
			if got != want {
				return fmt.Errorf("got %v", got)
			}
			return nil
		})
	}

	held := proxy.Hold(func(r *http.Request, _ []byte) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/deployments")
	})
	for i := range 5 {
		framework.Foos.Create(t, ns, fmt.Sprintf("gone-%d", i), 1)
	}
	clustertest.WaitUntil(t, "a write blocks the only worker", func(context.Context) error {
		select {
		case <-held.Arrived():
			return nil
		default:
			return errors.New("no write received")
		}
	})
	clustertest.WaitUntil(t, "a Foo is queued", func(context.Context) error {
		if waiting() == 0 {
			return errors.New("none queued")
		}
		return nil
	})
	framework.Foos.UninstallCRD(t)
	served(0)
	install(t, framework.Foos)
	served(1)
	if _, err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	clustertest.WaitUntil(t, "a new Foo is accepted", func(ctx context.Context) error {
		_, err := framework.Foos.TryStore(ctx, ns, framework.Foos.New("new", 1))
		return err
	})
	framework.Foos.WaitCondition(t, ns, "new", "Reconciling", "Progressing")
	clustertest.WaitUntil(t, "no Foo is queued", func(context.Context) error {
		if seconds := waiting(); seconds != 0 {
			return fmt.Errorf("the oldest has been queued for %v s", seconds)
		}
		return nil
	})
}

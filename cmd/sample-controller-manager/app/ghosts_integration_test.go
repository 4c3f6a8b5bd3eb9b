// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestObjectsOfDeletedCRDDoNotWait deletes and re-creates the CRD of Foos while a write
// blocks the only worker and other Foos are queued. The deleted Foos must not count as
// queued.
func TestObjectsOfDeletedCRDDoNotWait(t *testing.T) {
	ownCluster(t)
	ns := newNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, shared.Cluster(), nil)
	server := startDaemon(t, "--kubeconfig="+proxy.Kubeconfig(t, namespace, namespace), "--controllers="+foos.Controller, foos.oneWorker(),
		// The write must not time out on a busy machine.
		"--leader-elect-lease-duration=5m", "--leader-elect-renew-deadline=4m", "--write-timeout=2m", "--sync-timeout=2m")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	waiting := func() float64 {
		return metric(t, server, admin, fmt.Sprintf("sample_controller_manager_oldest_key_seconds{controller=%q}", foos.Controller))
	}
	served := func(want float64) {
		t.Helper()
		clustertest.WaitUntil(t, fmt.Sprintf("the metric of served resources is %v", want), func(context.Context) error {
			got := metric(t, server, admin, fmt.Sprintf("sample_controller_manager_resource_served{resource=%q}", foos.CRD()))
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
		foos.Create(t, ns, fmt.Sprintf("gone-%d", i), 1)
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
	foos.uninstall(t)
	served(0)
	foos.install(t)
	served(1)
	if _, err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	clustertest.WaitUntil(t, "a new Foo is accepted", func(ctx context.Context) error {
		_, err := foos.TryStore(ctx, ns, foos.New("new", 1))
		return err
	})
	foos.waitCondition(t, ns, "new", "Reconciling", "Progressing")
	clustertest.WaitUntil(t, "no Foo is queued", func(context.Context) error {
		if seconds := waiting(); seconds != 0 {
			return fmt.Errorf("the oldest has been queued for %v s", seconds)
		}
		return nil
	})
}

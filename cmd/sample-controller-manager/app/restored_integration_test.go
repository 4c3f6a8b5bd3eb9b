// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestRestoredBackupLeavesNoGhosts restores etcd from a backup that is older than some Foos.
// The daemon must forget these, also if writes pass the old version before its connection is back.
// Within 30 s of the restore they must not: see package informers.
func TestRestoredBackupLeavesNoGhosts(t *testing.T) {
	const writes = 300 // after the restore, which pass the old version
	for name, cut := range map[string]bool{
		"connected": false,
		"cut off":   true, // until all is written
	} {
		t.Run(name, func(t *testing.T) {
			ownCluster(t)
			ns := newNamespace(t)
			silencer := startSilencer(t, func(*http.Request) bool { return true })
			server := startDaemon(t, "--kubeconfig="+silencer.Kubeconfig(t, namespace, namespace))
			admin := token(t, newNamespace(t), clusterRole(t, everything))
			cached := func(want float64) {
				t.Helper()
				clustertest.WaitUntil(t, fmt.Sprintf("%v Foos are cached", want), func(context.Context) error {
					if got := metric(t, server, admin, fmt.Sprintf("sample_controller_manager_informer_objects{resource=%q}", foos.CRD())); got != want {
						return fmt.Errorf("got %v", got)
					}
					return nil
				})
			}
			foos.Create(t, ns, "kept", 1)
			foos.waitCondition(t, ns, "kept", "Reconciling", "Progressing")
			backup := filepath.Join(t.TempDir(), "backup")
			if err := shared.Cluster().WithoutStorage(t.Context(), func(dir string) error { return os.CopyFS(backup, os.DirFS(dir)) }); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				foos.Create(t, ns, fmt.Sprintf("lost-%d", i), 1)
				foos.waitCondition(t, ns, fmt.Sprintf("lost-%d", i), "Reconciling", "Progressing")
			}
			cached(6)

			silencer.silent.Store(cut)
			begin := time.Now()
			if err := shared.Cluster().WithoutStorage(t.Context(), func(dir string) error {
				return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(backup)))
			}); err != nil {
				t.Fatal(err)
			}
			if !cut {
				cached(1)
			}
			for i := range writes {
				clustertest.WaitUntil(t, "a write is accepted", func(ctx context.Context) error { return foos.Touch(ctx, ns, "kept", fmt.Sprint(i)) })
			}
			if cut {
				time.Sleep(time.Until(begin.Add(40 * time.Second)))
				silencer.silent.Store(false)
			}
			cached(1)
			foos.Create(t, ns, "new", 1)
			foos.waitCondition(t, ns, "new", "Reconciling", "Progressing")
			if _, err := foos.In(ns).Get(t.Context(), "lost-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("getting a Foo that was not in the backup: %v", err)
			}
		})
	}
}

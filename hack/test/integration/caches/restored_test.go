// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

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

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestRestoredBackupLeavesNoGhosts restores etcd from a backup that is older than some Foos.
// The daemon must forget these, also if writes pass the old version before its watches are back.
func TestRestoredBackupLeavesNoGhosts(t *testing.T) {
	const writes = 300 // after the restore, which pass the old version
	for name, cut := range map[string]bool{
		"connected": false,
		"cut off":   true, // until all is written
	} {
		t.Run(name, func(t *testing.T) {
			framework.OwnAPIServer(t)
			ns := framework.NewNamespace(t)
			silencer := framework.StartSilencer(t, func(*http.Request) bool { return true })
			server := framework.StartDaemon(t, "--kubeconfig="+silencer.Kubeconfig(t, framework.DaemonName, framework.DaemonName))
			server.Admin() // its account is in the backup
			cached := func(want float64) {
				t.Helper()
				clustertest.WaitUntil(t, fmt.Sprintf("%v Foos are cached", want), func(context.Context) error {
					if got := server.Value(fmt.Sprintf("sample_controller_manager_informer_objects{resource=%q}", framework.Foos.CRD())); got != want {
						return fmt.Errorf("got %v", got)
					}
					return nil
				})
			}
			framework.Foos.Create(t, ns, "kept", 1)
			framework.Foos.WaitCondition(t, ns, "kept", "Reconciling", "Progressing")
			backup := filepath.Join(t.TempDir(), "backup")
			if err := framework.Cluster().WithoutStorage(t.Context(),
				func(dir string) error { return os.CopyFS(backup, os.DirFS(dir)) }); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				framework.Foos.Create(t, ns, fmt.Sprintf("lost-%d", i), 1)
				framework.Foos.WaitCondition(t, ns, fmt.Sprintf("lost-%d", i), "Reconciling", "Progressing")
			}
			cached(6)

			silencer.Silent.Store(cut)
			begin := time.Now()
			if err := framework.Cluster().WithoutStorage(t.Context(), func(dir string) error {
				return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(backup)))
			}); err != nil {
				t.Fatal(err)
			}
			for i := range writes {
				clustertest.WaitUntil(t, "a write is accepted", func(ctx context.Context) error {
					return framework.Foos.Touch(ctx, ns, "kept",
						fmt.Sprint(i))
				})
			}
			if cut {
				time.Sleep(time.Until(begin.Add(10 * time.Second)))
				silencer.Silent.Store(false)
			}
			cached(1)
			framework.Foos.Create(t, ns, "new", 1)
			framework.Foos.WaitCondition(t, ns, "new", "Reconciling", "Progressing")
			if _, err := framework.Foos.In(ns).Get(t.Context(), "lost-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("getting a Foo that was not in the backup: %v", err)
			}
		})
	}
}

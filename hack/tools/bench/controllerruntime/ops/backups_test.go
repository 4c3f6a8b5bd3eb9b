// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/controller-manager/examples/ops/vault"
)

// newBackup creates a Backup, whose generation the fake client does not set.
func newBackup(t *testing.T, v *vault.Fake) (*env, *backupReconciler) {
	e := newEnv(t)
	r := &backupReconciler{Client: e, events: e.events, vault: vault.New("http://vault.test", v)}
	e.must(e.user.Create(t.Context(), &api.Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vaulted", Name: "db", Generation: 1},
		Spec:       api.BackupSpec{Source: "data", Schedule: "@daily", Retention: 3},
	}))
	return e, r
}

// expectReady expects the condition of the Backup.
func (e *env) expectReady(want string) {
	e.Helper()
	var backup api.Backup
	got := "none"
	if err := e.user.Get(e.Context(), client.ObjectKey{Namespace: "vaulted", Name: "db"}, &backup); err != nil {
		e.must(client.IgnoreNotFound(err))
		got = "gone"
	} else if c := meta.FindStatusCondition(backup.Status.Conditions, "Ready"); c != nil {
		got = string(c.Status) + " " + c.Reason
	}
	if got != want {
		e.Errorf("the Backup is %q, want %q", got, want)
	}
}

func (e *env) expectRequests(v *vault.Fake, want ...string) {
	e.Helper()
	if got := v.Set(false); !slices.Equal(got, want) {
		e.Errorf("requests %q, want %q", got, want)
	}
}

func TestBackup(t *testing.T) {
	v := &vault.Fake{}
	e, r := newBackup(t, v)
	e.reconcile(r, "vaulted", "db", "without a claim", "update db", "update status of db")
	e.expectReady("False SourceMissing")
	e.expectEvents(`Warning SourceMissing there is no claim "data"`)
	e.expectRequests(v, "PUT /vaults/vaulted/db")

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "vaulted", Name: "data"}}
	e.must(e.user.Create(t.Context(), claim))
	requests := r.backupsOf(t.Context(), claim)
	if len(requests) != 1 || requests[0].Name != "db" {
		t.Errorf("the claim enqueues %v, want the Backup", requests)
	}
	e.reconcile(r, "vaulted", "db", "with a claim", "create backup-db", "update status of db")
	e.expectReady("True Scheduled")

	v.Set(true)
	e.must(e.user.Delete(t.Context(), &api.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "vaulted", Name: "db"}}))
	if after := e.reconcile(r, "vaulted", "db", "the vault is broken").RequeueAfter; after != time.Minute {
		t.Errorf("requeued after %v, want a minute", after)
	}
	e.expectReady("True Scheduled") // it waits for the vault
	const failed = "Warning VaultFailed the vault answered 503 Service Unavailable"
	e.expectEvents(failed, failed)

	v.Set(false)
	e.reconcile(r, "vaulted", "db", "the vault is repaired", "update db")
	e.expectReady("gone")
	e.expectRequests(v, "DELETE /vaults/vaulted/db")
}

func TestVaultIsTriedAgain(t *testing.T) {
	v := &vault.Fake{}
	v.Set(true)
	e, r := newBackup(t, v)
	after := e.reconcile(r, "vaulted", "db", "the vault is broken", "update db", "update status of db").RequeueAfter
	if after != time.Minute {
		t.Errorf("requeued after %v, want a minute", after)
	}
	e.expectReady("False VaultFailed")
	e.expectEvents("Warning VaultFailed the vault answered 503 Service Unavailable")
	v.Set(false)
	e.reconcile(r, "vaulted", "db", "the vault is repaired", "update status of db")
	e.expectReady("False SourceMissing")
}

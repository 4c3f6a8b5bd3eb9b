// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/controller-manager/examples/ops/vault"
	"samplecontroller.io/controller-manager/managertest"
)

// ready returns the condition of the Backup.
func ready(e *managertest.Env) string {
	backup, ok := managertest.Get[*api.Backup](e, "vaulted", "db")
	if !ok {
		return "gone"
	}
	c := meta.FindStatusCondition(backup.Status.Conditions, "Ready")
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

func expectReady(t *testing.T, e *managertest.Env, want string) {
	t.Helper()
	if got := ready(e); got != want {
		t.Errorf("the Backup is %q, want %q", got, want)
	}
}

func TestBackup(t *testing.T) {
	const backup, status = "patch backups.ops.example.org vaulted/db", "patch backups/status.ops.example.org vaulted/db"
	v := &vault.Fake{}
	run(t, v, func(t *testing.T, e *managertest.Env) {
		db := &api.Backup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "vaulted", Name: "db"},
			Spec:       api.BackupSpec{Source: "data", Schedule: "@daily", Retention: 3},
		}
		e.Create(db)
		e.Settle()
		expectReady(t, e, "False SourceMissing")
		expect(t, "without a claim", e.Writes(), backup, status)
		expect(t, "Events", e.Events(), `Warning SourceMissing there is no claim "data"`)
		expect(t, "requests", v.Set(false), "PUT /vaults/vaulted/db")

		e.Create(claim())
		e.Settle()
		expectReady(t, e, "True Scheduled")
		expect(t, "with a claim", e.Writes(), "create cronjobs.batch vaulted/backup-db", status)

		v.Set(true)
		e.Delete(db)
		e.Settle()
		expectReady(t, e, "True Scheduled") // it waits for the vault
		expect(t, "Events", e.Events(), "Warning VaultFailed the vault answered 503 Service Unavailable")
		v.Set(false)
		managertest.Update(e, "vaulted", "db", func(b *api.Backup) { b.Labels = map[string]string{"try": "again"} })
		e.Settle()
		expectReady(t, e, "gone")
		expect(t, "requests", v.Set(false), "DELETE /vaults/vaulted/db")
	}, "--controllers=backup-controller", "--namespace=vaulted")
}

// TestPause pauses a Backup and then its namespace: the example has no line for that.
func TestPause(t *testing.T) {
	const paused = "ops-manager.samplecontroller.io/paused"
	const status = "patch backups/status.ops.example.org vaulted/db"
	v := &vault.Fake{}
	run(t, v, func(t *testing.T, e *managertest.Env) {
		e.Create(&api.Backup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "vaulted", Name: "db", Annotations: map[string]string{paused: "true"}},
			Spec:       api.BackupSpec{Source: "data", Schedule: "@daily", Retention: 3},
		}, claim())
		e.Settle()
		expect(t, "a paused Backup", e.Writes(), status)
		expect(t, "requests", v.Set(false))
		managertest.Update(e, "", "vaulted", func(n *corev1.Namespace) { n.Annotations = map[string]string{paused: ""} })
		managertest.Update(e, "vaulted", "db", func(b *api.Backup) { b.Annotations = nil })
		e.Settle()
		expect(t, "a Backup in a paused namespace", e.Writes(), status)
		managertest.Update(e, "", "vaulted", func(n *corev1.Namespace) { n.Annotations = nil })
		e.Settle()
		expectReady(t, e, "True Scheduled")
		expect(t, "a resumed Backup", e.Writes(), "patch backups.ops.example.org vaulted/db", "create cronjobs.batch vaulted/backup-db", status)
		expect(t, "requests", v.Set(false), "PUT /vaults/vaulted/db")
	}, "--controllers=backup-controller")
}

// TestVaultIsTriedAgain needs a minute, so it runs in memory only.
func TestVaultIsTriedAgain(t *testing.T) {
	v := &vault.Fake{}
	v.Set(true)
	managertest.Run(t, program(v), func(t *testing.T, e *managertest.Env) {
		object := metav1.ObjectMeta{Namespace: "vaulted", Name: "db"}
		e.Create(&api.Backup{ObjectMeta: object, Spec: api.BackupSpec{Source: "data"}})
		time.Sleep(150 * time.Second)
		if n := len(v.Set(false)); n != 4 { // at the start, after the change of the status, and each minute
			t.Errorf("%d requests, want 4", n)
		}
		expect(t, "Events", e.Events(), "Warning VaultFailed the vault answered 503 Service Unavailable")
		expectReady(t, e, "False VaultFailed")
		time.Sleep(time.Minute)
		expectReady(t, e, "False SourceMissing")
	})
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vaulted", Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

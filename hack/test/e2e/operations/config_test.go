// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestConfigFileChangesLeader changes settings of a daemon that leads. It neither starts again, nor hands over,
// nor lists anything again.
func TestConfigFileChangesLeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(flags ...string) {
		t.Helper()
		content := "apiVersion: config.samplecontroller.io/v1alpha1\nkind: ControllerManagerConfiguration\nflags:\n  " +
			strings.Join(flags, "\n  ") + "\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const own = "concurrent-foo-syncs: 3"
	write(own)
	d := framework.StartDaemon(t, "--config="+path)
	foos, icecreams := framework.Foos, framework.Icecreams
	ns := framework.NewNamespace(t)
	foos.Create(t, ns, "foo", 1)
	icecreams.Create(t, ns, "icecream", 1)
	foos.WaitReady(t, ns, "foo", 1)
	icecreams.WaitReady(t, ns, "icecream", 1)
	began := time.Now()
	applied := 0
	apply := func(flags ...string) (at time.Time) {
		t.Helper()
		write(flags...)
		applied++
		d.WaitLogged(applied, `"Applied configuration file"`)
		return time.Now()
	}

	off := apply(own, `controllers: ["*", -foo-controller]`)
	d.WaitState("foo-controller", "Disabled")
	framework.Kubectl(t, "-n", ns, "scale", "deployment/foo", "--replicas=3")
	framework.Kubectl(t, "-n", ns, "scale", "deployment/icecream", "--replicas=3")
	icecreams.WaitReplicas(t, ns, "icecream", 1)
	foos.WaitReplicas(t, ns, "foo", 3)
	late := func(event auditv1.Event) bool { return event.RequestReceivedTimestamp.After(off.Add(time.Second)) }
	if writes := foos.Writes(t, ns, late); len(writes) > 0 {
		t.Errorf("writes of foo-controller while it was off: %v", writes)
	}

	apply(own)
	d.WaitState("foo-controller", "Running")
	foos.WaitReady(t, ns, "foo", 1)

	write(own, "sync-timeout: 70s")
	d.WaitLog("flags.sync-timeout: changing it needs a restart")
	d.GetPage("/debug/controllers", d.Admin(), 200, "Configuration file refused")
	if got := d.Value("sample_controller_manager_config_refused"); got != 1 {
		t.Errorf("config_refused is %v, want 1", got)
	}
	apply(own, "status-aggregation-interval: 5s")
	if got := d.Value("sample_controller_manager_config_refused"); got != 0 {
		t.Errorf("config_refused is %v, want 0", got)
	}
	wantNoNewStart(t, d, began)
}

// wantNoNewStart checks that a daemon has led all the time since it began to, and has listed nothing again.
func wantNoNewStart(t *testing.T, d *framework.Replica, began time.Time) {
	t.Helper()
	for _, text := range []string{`"Leading"`, `"Campaigning for the lease"`} {
		if lines := d.LogAbout(text); len(lines) != 1 {
			t.Errorf("%s was logged %d times, want once", text, len(lines))
		}
	}
	if lists := framework.InformerLists(t, began); len(lists) > 0 {
		t.Errorf("resources were listed again: %v", lists)
	}
}

// TestInvalidConfigFileEndsStart checks that the daemon says all that is wrong, and exits.
func TestInvalidConfigFileEndsStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: ConfigMap\nflags: {foo-syncs: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := framework.StartProgram(t, framework.Binary(), "--config="+path)
	p.WantExit(1)
	p.WaitLog("flags.foo-syncs: is not a flag: see --help")
}

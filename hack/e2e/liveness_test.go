// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// stuckAfter is how long after its last renewal a leader that neither renews nor
// notices counts as stuck: a replica's lease duration, and as much again as
// kube-controller-manager gives it.
const stuckAfter = 6*time.Second + 20*time.Second

// TestOnlyAStuckElectorFailsLivez has the credential plugin of a leader hang: no request
// of its gets as far as to a timeout. It alone fails its liveness probe, not the one
// that takes over, whose network then goes, nor a standby without a network. All wait
// for an API meanwhile.
func TestOnlyAStuckElectorFailsLivez(t *testing.T) {
	freeLease(t)
	restoreCRDs(t)
	kubectl(t, "delete", "crd", "icecreams.controller.nicoleh.io", "--wait", "--timeout=60s")
	plugin := newPlugin(t)
	stuck := startReplicaWith(t, plugin.kubeconfig(t))
	t.Cleanup(plugin.goOn) // or it would keep the log open
	stuck.waitLog(`"Leading"`)
	lost, lostLink := startLinked(t)
	standby, standbyLink := startLinked(t)
	all := map[string]*replica{"stuck": stuck, "lost its network while it led": lost, "lost its network while it stood by": standby}
	for _, r := range all {
		r.wantLive(t.Context())
	}

	standbyLink.Hold(clustertest.Both)
	plugin.hang()
	lost.waitLog(`"Leading"`)
	lostLink.Hold(clustertest.Both)
	began, failed := time.Now(), time.Duration(0)
	waitUntil(t, "all have had the time in which a stuck elector shows", func(ctx context.Context) error {
		lost.wantLive(ctx)
		standby.wantLive(ctx)
		if code, body, err := stuck.get(ctx, "/livez"); err != nil {
			t.Fatal(err)
		} else if failed == 0 && code != http.StatusOK {
			failed = time.Since(began)
			if code != http.StatusInternalServerError || !strings.Contains(body, "[-]leaderElection failed") {
				t.Errorf("/livez of a stuck leader: %d %s, want 500 because of leaderElection", code, body)
			}
		} else if failed != 0 && code == http.StatusOK {
			t.Errorf("/livez of a stuck leader: 200 again, want 500 for as long as it is stuck")
		}
		if took := time.Since(began); took < stuckAfter+5*time.Second {
			return fmt.Errorf("only %v are over", took)
		}
		return nil
	})
	t.Logf("/livez of the stuck leader failed %v after another led", failed)
	if failed == 0 {
		t.Error("/livez of a stuck leader never failed")
	}
	if strings.Count(lost.log.String(), `"Lost the lease`) != 1 {
		t.Error("the leader without a network has not lost the Lease")
	}

	plugin.goOn()
	lostLink.Release()
	standbyLink.Release()
	waitUntil(t, "the elector is no longer stuck", func(ctx context.Context) error {
		code, body, err := stuck.get(ctx, "/livez")
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	for _, r := range all {
		r.stop()
	}
}

// startLinked starts a replica with a network of its own, and waits until it knows who
// leads.
func startLinked(t *testing.T) (*replica, *clustertest.Link) {
	t.Helper()
	link := clustertest.StartLink(t, testCluster)
	r := startReplicaWith(t, link.Kubeconfig(t, testCluster, daemonName, daemonName))
	r.waitLog(`"Another process leads"`)
	return r, link
}

// wantLive checks that the replica passes its liveness probe.
func (r *replica) wantLive(ctx context.Context) {
	r.t.Helper()
	if code, body, err := r.get(ctx, "/livez"); err != nil || code != http.StatusOK {
		r.t.Errorf("/livez: %d %s %v, want 200", code, body, err)
	}
}

// plugin is a credential plugin that a test can have hang. Its credentials last for two
// seconds.
type plugin struct{ script, hanging string }

func newPlugin(t *testing.T) plugin {
	t.Helper()
	dir := t.TempDir()
	return plugin{script: filepath.Join(dir, "plugin"), hanging: filepath.Join(dir, "hanging")}
}

// kubeconfig returns the path of a kubeconfig that acts as the daemon by the plugin.
func (p plugin) kubeconfig(t *testing.T) string {
	t.Helper()
	path, err := testCluster.ServiceAccountKubeconfig(t.Context(), daemonName, daemonName)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	user := config.AuthInfos[daemonName]
	script := fmt.Sprintf(`#!/bin/sh
while [ -e '%s' ]; do sleep 0.1; done
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%%s", "expirationTimestamp": "%%s"}}' \
	"$(cat '%s')" "$(date -u -d '2 seconds' +%%Y-%%m-%%dT%%H:%%M:%%SZ)"
`, p.hanging, user.TokenFile)
	if err := os.WriteFile(p.script, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	user.TokenFile = ""
	user.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: p.script, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	path = filepath.Join(filepath.Dir(p.script), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// hang has the plugin not return before goOn is called.
func (p plugin) hang() { _ = os.WriteFile(p.hanging, nil, 0o600) }

func (p plugin) goOn() { _ = os.Remove(p.hanging) }

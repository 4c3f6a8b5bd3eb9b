// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

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

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// stuckAfter is how long after its last renewal a leader that neither renews nor
// notices counts as stuck: a replica's lease duration, and as much again as
// kube-controller-manager gives it.
const stuckAfter = 6*time.Second + 20*time.Second

// TestStuckElectorFailsLivez has the credential plugin of a leader hang: no request
// of its gets as far as to a timeout. It alone fails its liveness probe, not the one
// that takes over, whose network then goes, nor a standby without a network. All wait
// for an API meanwhile.
func TestStuckElectorFailsLivez(t *testing.T) {
	framework.FreeLease(t)
	framework.RestoreCRDs(t)
	framework.Kubectl(t, "delete", "crd", "icecreams.controller.nicoleh.io", "--wait", "--timeout=60s")
	plugin := newPlugin(t)
	stuck := framework.StartReplicaWith(t, plugin.kubeconfig(t))
	t.Cleanup(plugin.goOn) // or it would keep the log open
	stuck.WaitLog(`"Leading"`)
	lost, lostLink := startLinked(t)
	standby, standbyLink := startLinked(t)
	all := map[string]*framework.Replica{"stuck": stuck, "lost its network while it led": lost, "lost its network while it stood by": standby}
	for _, r := range all {
		r.WantLive(t.Context())
	}

	standbyLink.Hold(clustertest.Both)
	plugin.hang()
	lost.WaitLog(`"Leading"`)
	lostLink.Hold(clustertest.Both)
	began, failed := time.Now(), time.Duration(0)
	clustertest.WaitUntil(t, "all have had the time in which a stuck elector shows", func(ctx context.Context) error {
		lost.WantLive(ctx)
		standby.WantLive(ctx)
		if code, body, err := stuck.Get(ctx, "/livez"); err != nil {
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
	if strings.Count(lost.Log.String(), `"Lost the lease`) != 1 {
		t.Error("the leader without a network has not lost the Lease")
	}

	plugin.goOn()
	lostLink.Release()
	standbyLink.Release()
	clustertest.WaitUntil(t, "the elector is no longer stuck", func(ctx context.Context) error {
		code, body, err := stuck.Get(ctx, "/livez")
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	for _, r := range all {
		r.Stop()
	}
}

// startLinked starts a replica with a network of its own, and waits until it knows who
// leads.
func startLinked(t *testing.T) (*framework.Replica, *clustertest.Link) {
	t.Helper()
	link := clustertest.StartLink(t, framework.Cluster())
	r := framework.StartReplicaWith(t, link.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName))
	r.WaitLog(`"Another process leads"`)
	return r, link
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
	return framework.DaemonKubeconfig(t, func(credentials *clientcmdapi.AuthInfo) {
		script := fmt.Sprintf(`#!/bin/sh
while [ -e '%s' ]; do sleep 0.1; done
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%%s", "expirationTimestamp": "%%s"}}' \
	"$(cat '%s')" "$(date -u -d '2 seconds' +%%Y-%%m-%%dT%%H:%%M:%%SZ)"
`, p.hanging, credentials.TokenFile)
		if err := os.WriteFile(p.script, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		credentials.TokenFile = ""
		credentials.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: p.script, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	})
}

// hang has the plugin not return before goOn is called.
func (p plugin) hang() { _ = os.WriteFile(p.hanging, nil, 0o600) }

func (p plugin) goOn() { _ = os.Remove(p.hanging) }

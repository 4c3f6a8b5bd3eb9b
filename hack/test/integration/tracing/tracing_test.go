// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestTraceFromFooToAPIServer changes a Foo, and follows the trace of the sync to the API server's
// handling of the Deployment.
func TestTraceFromFooToAPIServer(t *testing.T) {
	account, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName, framework.DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		kubeconfig string
		joins      func(server, request span) bool
	}{
		"a ServiceAccount: by a link": {account, span.linksTo},
		"system:masters: as a child":  {framework.Cluster().Kubeconfig, span.isChildOf},
	} {
		t.Run(name, func(t *testing.T) {
			const secret = "registry.example.com/secret-image:1"
			ns := framework.NewNamespace(t)
			daemon := framework.StartReplicaWith(t, test.kubeconfig, "--tracing-config-file="+configFile).Ready()
			framework.WaitLeader(t, "")
			framework.Foos.Create(t, ns, "a", 1)
			framework.Foos.WaitReplicas(t, ns, "a", 1)
			framework.Foos.Patch(t, ns, "a", `{"spec":{"replicas":2,"image":"`+secret+`"}}`)
			framework.Foos.WaitReplicas(t, ns, "a", 2)
			var sync, request, server span
			clustertest.WaitUntil(t, "the API server's span of the Deployment is found", func(context.Context) (err error) {
				if request, err = one(framework.DaemonName, func(s span) bool {
					return s.Name == "HTTP PATCH" && strings.Contains(s.attributes()["url.full"], "/namespaces/"+ns+"/deployments/a?")
				}); err != nil {
					return err
				}
				if sync, err = one(framework.DaemonName, request.isChildOf); err != nil {
					return err
				}
				server, err = one("apiserver", func(s span) bool { return test.joins(s, request) })
				return err
			})
			daemon.Stop()
			got := sync.attributes()
			want := map[string]string{"controller": "foo-controller", "queue": "foo-controller", "namespace": ns, "name": "a"}
			for key, value := range want {
				if got[key] != value {
					t.Errorf("attribute %s of the sync is %q, want %q", key, got[key], value)
				}
			}
			if got["trigger"] == "" || got["result"] == "" {
				t.Errorf("the sync has no trigger or no result: %v", got)
			}
			if sync.Name != "Sync" {
				t.Errorf("the span of the request is a child of %s, want Sync", sync.Name)
			}
			if target := server.attributes()["http.target"]; !strings.HasPrefix(target, "/apis/apps/v1/namespaces/"+ns+"/deployments/a") {
				t.Errorf("the API server's span is about %s, want the Deployment", target)
			}
			if host, err := os.Hostname(); err != nil || sync.resource["service.instance.id"] != host {
				t.Errorf("the instance is %q, want %s (%v)", sync.resource["service.instance.id"], host, err)
			}
			for _, s := range spans.find(framework.DaemonName, func(span) bool { return true }) {
				if text := s.String(); strings.Contains(text, "secret-image") {
					t.Errorf("a span quotes an object: %s", text)
				}
			}
		})
	}
}

// one returns the only span of a service that matches.
func one(service string, match func(span) bool) (span, error) {
	found := spans.find(service, match)
	if len(found) != 1 {
		return span{}, fmt.Errorf("%d spans of %s, want one", len(found), service)
	}
	return found[0], nil
}

// TestHangingCollector has a collector that accepts connections and never answers.
func TestHangingCollector(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	hanging := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(hanging, configFor(listener.Addr().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const objects = 200
	converge := func(flags ...string) (took, end time.Duration) {
		ns := framework.NewNamespace(t)
		daemon := framework.StartReplica(t, flags...).Ready()
		framework.WaitLeader(t, "")
		began := time.Now()
		for i := range objects {
			framework.Foos.Create(t, ns, fmt.Sprintf("a-%d", i), 1)
		}
		for i := range objects {
			framework.Foos.WaitReplicas(t, ns, fmt.Sprintf("a-%d", i), 1)
		}
		took, began = time.Since(began), time.Now()
		daemon.Stop()
		return took, time.Since(began)
	}
	plainTook, plainEnd := converge()
	took, end := converge("--tracing-config-file=" + hanging)
	t.Logf("%d Foos: %v, and %v with a hanging collector; the end: %v and %v", objects, plainTook, took, plainEnd, end)
	// The machine may be busy. If syncs waited for the collector, each of 1,000 spans would take 10 s.
	if took > 2*plainTook+30*time.Second {
		t.Errorf("%d Foos took %v, and %v without tracing", objects, took, plainTook)
	}
	if end > plainEnd+5*time.Second {
		t.Errorf("the end took %v, and %v without tracing", end, plainEnd)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// DaemonName is the name of the daemon's namespace, ServiceAccount, Lease, Deployment,
// Service and PodDisruptionBudget.
const DaemonName = "sample-controller-manager"

// PluginName is the name of the kubectl plugin's program.
const PluginName = "kubectl-scm"

// StatusReader is the name of the ServiceAccount whose tokens `status` sends to replicas, of
// its ClusterRole, and of the Role that lets operators request such a token.
const StatusReader = DaemonName + "-status-reader"

// DaemonUser is the user to which the manifests grant rights.
const DaemonUser = "system:serviceaccount:" + DaemonName + ":" + DaemonName

// DaemonAccount is the ServiceAccount of the daemon.
var DaemonAccount = cache.NewObjectName(DaemonName, DaemonName)

// Replica is one process of the daemon.
type Replica struct {
	*Program
	URL string

	admin string // created on first use
}

// StartReplica starts the daemon as its ServiceAccount, with a new token. At the end of the
// test it is killed if it still runs. If the test failed, its log is printed.
func StartReplica(t *testing.T, flags ...string) *Replica {
	t.Helper()
	return StartReplicaOf(t, Binary(), flags...)
}

// StartReplicaOf is StartReplica for a given build of the daemon.
func StartReplicaOf(t *testing.T, path string, flags ...string) *Replica {
	t.Helper()
	kubeconfig, err := Cluster().ServiceAccountKubeconfig(t.Context(), DaemonName, DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	return StartBuild(t, path, kubeconfig, flags...)
}

// StartReplicaWith starts the daemon with a given kubeconfig.
func StartReplicaWith(t *testing.T, kubeconfig string, flags ...string) *Replica {
	t.Helper()
	return StartBuild(t, Binary(), kubeconfig, flags...)
}

// StartBuild starts a given build of the daemon.
func StartBuild(t *testing.T, path, kubeconfig string, flags ...string) *Replica {
	t.Helper()
	port := FreePort(t)
	return &Replica{
		URL:     fmt.Sprintf("https://127.0.0.1:%d", port),
		Program: StartProgram(t, path, append(ReplicaFlags(kubeconfig, port), flags...)...),
	}
}

// ShortLease are the flags of a replica that is to lose its Lease.
var ShortLease = []string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--write-timeout=3s"}

// ReplicaFlags are the flags that all replicas have. The timeouts are so long that a replica
// neither loses its Lease nor abandons a write on a busy machine: the API server would still
// make that write.
func ReplicaFlags(kubeconfig string, port int) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--leader-elect-resource-namespace=" + DaemonName,
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=200ms",
		"--write-timeout=20s",
		"-v=2",
	}
}

// Ready waits until the replica reports that it is ready, and returns it.
func (r *Replica) Ready() *Replica {
	r.T.Helper()
	clustertest.WaitUntil(r.T, "the replica is ready", func(ctx context.Context) error {
		r.mustRun()
		code, body, err := r.Get(ctx, "/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	return r
}

// Get requests a path without credentials.
func (r *Replica) Get(ctx context.Context, path string) (code int, body string, err error) {
	return r.GetAs(ctx, "", path)
}

// Admin returns a token of a caller who may get and put everything that the daemon serves.
func (r *Replica) Admin() string {
	r.T.Helper()
	if r.admin == "" {
		r.admin = DebuggerToken(r.T, NewNamespace(r.T))
	}
	return r.admin
}

// GetAs requests a path with a bearer token, unless that is empty.
func (r *Replica) GetAs(ctx context.Context, token, path string) (code int, body string, err error) {
	return r.DoAs(ctx, http.MethodGet, token, path, "")
}

// GetWith requests a path with a client certificate.
func (r *Replica) GetWith(ctx context.Context, certificate *tls.Certificate,
	path string) (code int, body string, err error) {
	return r.do(ctx, []tls.Certificate{*certificate}, http.MethodGet, "", path, "")
}

// DoAs sends a request with a bearer token, unless that is empty.
func (r *Replica) DoAs(ctx context.Context, method, token, path, content string) (code int, body string, err error) {
	return r.do(ctx, nil, method, token, path, content)
}

func (r *Replica) do(
	ctx context.Context, certificates []tls.Certificate, method, token, path, content string,
) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, r.URL+path, strings.NewReader(content))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is self-signed and exists only in the memory of the replica.
	config := &tls.Config{InsecureSkipVerify: true, Certificates: certificates}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// CurrentLease returns the Lease in a namespace, empty if there is none.
func CurrentLease(t *testing.T, ns string) *coordinationv1.Lease {
	t.Helper()
	lease, err := currentLease(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func currentLease(ctx context.Context, ns string) (*coordinationv1.Lease, error) {
	lease, err := Kube().CoordinationV1().Leases(ns).Get(ctx, DaemonName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{}, nil
	}
	return lease, err
}

// Holder returns the holder of the daemon's Lease.
func Holder(t *testing.T) string {
	t.Helper()
	return ptr.Deref(CurrentLease(t, DaemonName).Spec.HolderIdentity, "")
}

// FreeLease deletes the Lease of an earlier test, so that the next replica leads at once.
func FreeLease(t *testing.T) {
	t.Helper()
	err := Kube().CoordinationV1().Leases(DaemonName).Delete(t.Context(), DaemonName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// WaitLeader waits until a holder other than the given one leads, and returns it.
func WaitLeader(t *testing.T, but string) (holder string) {
	t.Helper()
	return WaitLeaderIn(t, DaemonName, but)
}

// WaitLeaderIn is WaitLeader for the Lease in another namespace.
func WaitLeaderIn(t *testing.T, ns, but string) (holder string) {
	t.Helper()
	clustertest.WaitUntil(t, "a replica leads", func(ctx context.Context) error {
		lease, err := currentLease(ctx, ns)
		if err != nil {
			return err
		}
		if holder = ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder == but {
			return fmt.Errorf("the Lease is held by %q", holder)
		}
		return nil
	})
	return holder
}

// FreePort is [cluster.FreePort].
func FreePort(t *testing.T) int {
	t.Helper()
	port, err := cluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// OneWorker are flags that limit each kind's controller to one worker.
var OneWorker = []string{"--concurrent-foo-syncs=1", "--concurrent-icecream-syncs=1"}

// state returns the state of a controller and the reason for it.
func (r *Replica) state(ctx context.Context, controller string) (string, error) {
	_, body, err := r.GetAs(ctx, r.Admin(), "/healthz?verbose")
	for line := range strings.Lines(body) {
		if state, ok := strings.CutPrefix(line, controller+": "); ok {
			return strings.TrimSpace(state), nil
		}
	}
	return "", errors.Join(fmt.Errorf("nothing about %s in: %s", controller, body), err)
}

// WaitState waits until a controller is in a state, for a reason that contains all these
// words, and returns when that was observed.
func (r *Replica) WaitState(controller, state string, words ...string) time.Time {
	r.T.Helper()
	clustertest.WaitUntil(r.T, controller+" is "+state, func(ctx context.Context) error {
		is, err := r.state(ctx, controller)
		if err != nil {
			return err
		}
		for _, want := range append(words, state+" since ") {
			if !strings.Contains(is, want) {
				return fmt.Errorf("it is %s", is)
			}
		}
		return nil
	})
	return time.Now()
}

// WantLive checks that the replica passes its liveness probe.
func (r *Replica) WantLive(ctx context.Context) {
	r.T.Helper()
	if code, body, err := r.Get(ctx, "/livez"); err != nil || code != http.StatusOK {
		r.T.Errorf("/livez: %d %s %v, want 200", code, body, err)
	}
}

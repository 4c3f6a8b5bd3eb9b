// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// replica is one process of the daemon.
type replica struct {
	*program
	url string
}

// startReplica starts the daemon as its ServiceAccount, with a token of its own.
// It is killed at the end of the test if it still runs; its log is shown if the
// test failed.
func startReplica(t *testing.T, flags ...string) *replica {
	t.Helper()
	kubeconfig, err := testCluster.ServiceAccountKubeconfig(t.Context(), daemonName, daemonName)
	if err != nil {
		t.Fatal(err)
	}
	return startReplicaWith(t, kubeconfig, flags...)
}

// startReplicaWith starts the daemon with a given kubeconfig.
func startReplicaWith(t *testing.T, kubeconfig string, flags ...string) *replica {
	t.Helper()
	return startBuild(t, binary, kubeconfig, flags...)
}

// startBuild starts a given build of the daemon.
func startBuild(t *testing.T, path, kubeconfig string, flags ...string) *replica {
	t.Helper()
	port := freePort(t)
	return &replica{
		url:     fmt.Sprintf("https://127.0.0.1:%d", port),
		program: startProgram(t, path, append(replicaFlags(kubeconfig, port), flags...)...),
	}
}

// replicaFlags are the flags that every replica has.
func replicaFlags(kubeconfig string, port int) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--leader-elect-resource-namespace=" + daemonName,
		"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=200ms",
		"-v=2",
	}
}

// ready waits until the replica says that it is, and returns it.
func (r *replica) ready() *replica {
	r.t.Helper()
	waitUntil(r.t, "the replica is ready", func(ctx context.Context) error {
		select {
		case <-r.done:
			r.t.Fatalf("the replica ended: %v", r.cmd.ProcessState)
		default:
		}
		code, body, err := r.get(ctx, "/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	return r
}

// get requests a path without credentials.
func (r *replica) get(ctx context.Context, path string) (code int, body string, err error) {
	return r.getAs(ctx, "", path)
}

// getAs requests a path with a bearer token, unless that is empty.
func (r *replica) getAs(ctx context.Context, token, path string) (code int, body string, err error) {
	return r.doAs(ctx, http.MethodGet, token, path, "")
}

// doAs sends a request with a bearer token, unless that is empty.
func (r *replica) doAs(ctx context.Context, method, token, path, content string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(content))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is self-signed and in the memory of another process.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// metric returns the value of one of our series. token is that of somebody who may see it.
func (r *replica) metric(token, series string) int {
	r.t.Helper()
	code, body, err := r.getAs(r.t.Context(), token, "/metrics")
	if err != nil || code != http.StatusOK {
		r.t.Fatalf("/metrics: %d %.200s, %v", code, body, err)
	}
	_, value, found := strings.Cut(body, "\nsample_controller_manager_"+series+" ")
	value, _, _ = strings.Cut(value, "\n")
	n, err := strconv.ParseFloat(value, 64)
	if !found || err != nil {
		r.t.Fatalf("there is no series %s: %v", series, err)
	}
	return int(n)
}

// lease returns the daemon's Lease, empty if there is none.
func lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := kube.CoordinationV1().Leases(daemonName).Get(ctx, daemonName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{}, nil
	}
	return lease, err
}

// freeLease removes what an earlier test left of the Lease, so that the next
// replica leads at once.
func freeLease(t *testing.T) {
	t.Helper()
	err := kube.CoordinationV1().Leases(daemonName).Delete(t.Context(), daemonName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// waitLeader waits until somebody but the given holder leads, and returns who.
func waitLeader(t *testing.T, but string) (holder string) {
	t.Helper()
	waitUntil(t, "a replica leads", func(ctx context.Context) error {
		lease, err := lease(ctx)
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

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

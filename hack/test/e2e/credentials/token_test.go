// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// soon is how soon a replica must lead again once it has valid credentials.
const soon = 5 * time.Second

// tokenReadAgain is how often client-go rereads a token file, plus a margin.
const tokenReadAgain = 65 * time.Second

// ask sends a request to the API server with the credentials of config, on a new connection,
// and returns the status code.
func ask(ctx context.Context, config *rest.Config) (code int, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// waitRefused waits until the API server, which may have cached a token, no longer accepts it.
func waitRefused(t *testing.T, token string) {
	t.Helper()
	config := framework.TokenConfig(token)
	clustertest.WaitUntil(t, "the token is rejected", func(ctx context.Context) error {
		code, err := ask(ctx, config)
		if err == nil && code != http.StatusUnauthorized {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
}

// inPod is a script that runs a program as in a Pod, with a ServiceAccount's files in the
// directory where client-go expects them. Everything else is unchanged.
const inPod = `set -e
run="$(readlink -f /var/run)"
mount -t tmpfs tmpfs "${run}"
mkdir -p "${run}/secrets/kubernetes.io/serviceaccount"
mount --bind "$1" "${run}/secrets/kubernetes.io/serviceaccount"
export KUBERNETES_SERVICE_HOST="$2" KUBERNETES_SERVICE_PORT="$3"
shift 3
exec "$@"`

// startInPod starts the process with a directory of a ServiceAccount's files, and returns when
// it leads.
func startInPod(t *testing.T, l *framework.Isolated, dir string, flags ...string) *framework.Isolated {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(framework.Cluster().Config().Host, "https://"), ":")
	args := []string{"--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "sh", "-c", inPod, "sh", dir, host, port, framework.Binary())
	servingPort := framework.FreePort(t)
	flags = append(framework.ReplicaFlags("", servingPort), append(flags, "--leader-elect-resource-namespace="+l.Namespace)...)
	l.Replica = &framework.Replica{URL: fmt.Sprintf("https://127.0.0.1:%d", servingPort),
		Program: framework.StartProgram(t, "unshare", append(args, flags...)...)}
	l.Ready()
	l.WaitRenewal(time.Now())
	return l
}

// TestFaultTokenRotated replaces a Pod's token while the old one is valid.
func TestFaultTokenRotated(t *testing.T) {
	t.Parallel()
	l := framework.NewIsolated(t)
	dir := t.TempDir()
	files := func() map[string][]byte {
		return map[string][]byte{"token": []byte(l.Token(t, nil)), "ca.crt": framework.Cluster().Config().CAData,
			"namespace": []byte(l.Namespace)}
	}
	framework.AsKubelet(t, dir, files())
	startInPod(t, l, dir, "--controllers=status-aggregator")
	if ids := l.Credentials(t); len(ids) != 1 {
		t.Fatalf("credentials %q, want one", ids)
	}

	framework.AsKubelet(t, dir, files())
	rotated := time.Now()
	clustertest.WaitUntil(t, "the new token is used", func(context.Context) error {
		if ids := l.Credentials(t); len(ids) != 2 {
			return fmt.Errorf("credentials %q", ids)
		}
		return nil
	})
	took := time.Since(rotated)
	framework.WantSoon(t, "using the new token", took, tokenReadAgain)
	l.WaitRenewal(time.Now())
	if n := l.Unauthenticated(t); n > 0 {
		t.Errorf("%d requests were rejected, want none", n)
	}
	l.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D7", Fault: "a Pod's token is rotated in time",
		Ours: fmt.Sprintf("the new one is used after %s; 0 requests rejected", framework.Seconds(took)),
		Peer: "none: client-go rereads the file every minute, in every program",
	})
}

// TestFaultTokenLost makes the leader's token expire or be revoked, so that no replica leads,
// and then provides a new one.
func TestFaultTokenLost(t *testing.T) {
	t.Parallel()
	l := framework.NewIsolated(t)
	framework.Binary() // builds the daemon before the token starts to age
	// The API server accepts a token for a minute longer than its expiry, which is enough to start
	// the daemon.
	token := framework.Resign(t, l.Token(t, nil), map[string]any{"exp": time.Now().Unix()})
	kubeconfig, file := l.TokenKubeconfig(t, token)
	l.Start(t, kubeconfig, append(framework.ShortLease, "--controllers=foo")...)
	framework.Foos.Create(t, l.Namespace, "before", 1)
	framework.Foos.WaitReady(t, l.Namespace, "before", 1)

	var figures []string
	for i, loss := range []struct {
		what   string
		revoke func() (next func() string) // returns when the token is about to become invalid
	}{
		{"expired", func() func() string { return func() string { return podToken(t, l) } }},
		{"its Pod deleted", func() func() string {
			if err := framework.Kube().CoreV1().Pods(l.Namespace).Delete(t.Context(), "bound",
				metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Fatal(err)
			}
			return func() string { return l.Token(t, nil) }
		}},
		{"its ServiceAccount deleted and recreated", func() func() string {
			if err := framework.Kube().CoreV1().ServiceAccounts(l.Namespace).Delete(t.Context(), framework.IsolatedAccount,
				metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			framework.CreateAccount(t, l.Namespace, framework.IsolatedAccount)
			return func() string { return l.Token(t, nil) }
		}},
	} {
		next := loss.revoke()
		waitRefused(t, token)
		l.WaitLogged(i+1, `"Lost the lease,`)
		// Changes made in the meantime are carried out later, and once.
		name := fmt.Sprintf("meanwhile-%d", i)
		framework.Foos.Create(t, l.Namespace, name, 1)
		l.WantLive(t.Context())
		token = next()
		framework.ReplaceFile(t, file, []byte(token))
		given := time.Now()
		leads := max(0, l.WaitRenewal(given).Sub(given))
		framework.Foos.WaitReady(t, l.Namespace, name, 1)
		ready := time.Since(given)
		framework.WantSoon(t, "leading again with a new token", leads, soon)
		figures = append(figures, fmt.Sprintf("%s: leads %s after the new one, object Ready after %s", loss.what, framework.Seconds(leads), framework.Seconds(ready)))
	}
	framework.WantCreatedOnce(t, l.Requests(t))
	l.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D7b", Fault: "the leader's token expires or is revoked, and the new one comes late",
		Ours: strings.Join(figures, "; "),
		Peer: "none: client-go alone rereads the file within 50 s, whether or not the token is rejected",
	})
}

// podToken returns a token that is valid as long as its Pod exists.
func podToken(t *testing.T, l *framework.Isolated) string {
	t.Helper()
	pod, err := framework.Kube().CoreV1().Pods(l.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"},
		Spec: corev1.PodSpec{ServiceAccountName: framework.IsolatedAccount,
			Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l.Token(t, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
}

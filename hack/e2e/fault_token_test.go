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

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenReadAgain is how often client-go reads the file of a token, and a little.
const tokenReadAgain = 65 * time.Second

// token returns a new token of the replica's ServiceAccount, bound to an object unless
// that is nil.
func (l *loner) token(t *testing.T, bound *authenticationv1.BoundObjectReference) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	request, err := kube.CoreV1().ServiceAccounts(l.ns).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// tokenKubeconfig returns the path of a kubeconfig and that of the file that its token is
// in.
func (l *loner) tokenKubeconfig(t *testing.T, token string) (kubeconfig, file string) {
	t.Helper()
	return l.kubeconfig(t, func(dir string, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		file = filepath.Join(dir, "token")
		replaceFile(t, file, []byte(token))
		user.TokenFile = file
	}), file
}

// waitRefused waits until the API server accepts a token no more, which it may have in a
// cache.
func waitRefused(t *testing.T, token string) {
	t.Helper()
	config := rest.AnonymousClientConfig(testCluster.Config())
	config.BearerToken = token
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the token is refused", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			return errors.New(response.Status)
		}
		return nil
	})
}

// inPod is a script that runs a program as the kubelet starts it in a Pod, with the
// directory of a ServiceAccount's files where client-go looks for it. All else is as
// outside.
const inPod = `set -e
run="$(readlink -f /var/run)"
mount -t tmpfs tmpfs "${run}"
mkdir -p "${run}/secrets/kubernetes.io/serviceaccount"
mount --bind "$1" "${run}/secrets/kubernetes.io/serviceaccount"
export KUBERNETES_SERVICE_HOST="$2" KUBERNETES_SERVICE_PORT="$3"
shift 3
exec "$@"`

// startInPod starts the process with a directory of a ServiceAccount's files, and returns
// when it leads.
func (l *loner) startInPod(t *testing.T, dir string, flags ...string) *loner {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(testCluster.Config().Host, "https://"), ":")
	args := []string{"--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "sh", "-c", inPod, "sh", dir, host, port, binary)
	servingPort := freePort(t)
	flags = append(replicaFlags("", servingPort), append(flags, "--leader-elect-resource-namespace="+l.ns)...)
	l.replica = &replica{url: fmt.Sprintf("https://127.0.0.1:%d", servingPort), program: startProgram(t, "unshare", append(args, flags...)...)}
	l.ready()
	l.waitRenewal(time.Now())
	return l
}

// asKubelet replaces the files of a ServiceAccount as the kubelet does: they are links
// into a directory that is a link, which is replaced.
func asKubelet(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	data, err := os.MkdirTemp(dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // there is none at first
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Base(data), filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFaultTheTokenIsRotated replaces the token of a Pod while the old one is good.
func TestFaultTheTokenIsRotated(t *testing.T) {
	t.Parallel()
	l := newLoner(t)
	dir := t.TempDir()
	files := func() map[string][]byte {
		return map[string][]byte{"token": []byte(l.token(t, nil)), "ca.crt": testCluster.Config().CAData, "namespace": []byte(l.ns)}
	}
	asKubelet(t, dir, files())
	l.startInPod(t, dir, "--controllers=status-aggregator")
	if ids := l.credentials(t); len(ids) != 1 {
		t.Fatalf("credentials %q, want one", ids)
	}

	asKubelet(t, dir, files())
	rotated := time.Now()
	waitUntil(t, "the new token is used", func(context.Context) error {
		if ids := l.credentials(t); len(ids) != 2 {
			return fmt.Errorf("credentials %q", ids)
		}
		return nil
	})
	took := time.Since(rotated)
	wantSoon(t, "to use the new token", took, tokenReadAgain)
	l.waitRenewal(time.Now())
	if n := l.unauthenticated(t); n > 0 {
		t.Errorf("%d requests were refused, want none", n)
	}
	l.stop()
	reportFault(t, faultRow{
		ID: "D7", Fault: "a Pod's token is rotated in time",
		Ours: fmt.Sprintf("the new one is used after %s; 0 requests refused; longest time without a renewal %s", seconds(took), seconds(l.longestGap(t))),
		Peer: "none: client-go reads the file again each minute, for all alike",
	})
}

// TestFaultTheTokenIsLost has the leader's token expire or be revoked, so that nobody
// leads, and then gives it a new one.
func TestFaultTheTokenIsLost(t *testing.T) {
	t.Parallel()
	l := newLoner(t)
	// The API server lets a token live for a minute longer than it says.
	first := l.shortLived(t, time.Now().Add(-50*time.Second))
	kubeconfig, file := l.tokenKubeconfig(t, first)
	l.start(t, kubeconfig, "--controllers=foo")
	foos.create(t, l.ns, "before", 1)
	foos.waitReady(t, l.ns, "before", 1)

	var figures []string
	for i, loss := range []struct {
		what   string
		revoke func(token string) (next func() string) // returns when the token is as good as lost
	}{
		{"expired", func(string) func() string { return func() string { return l.boundToken(t) } }},
		{"its Pod deleted", func(string) func() string {
			if err := kube.CoreV1().Pods(l.ns).Delete(t.Context(), "bound", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Fatal(err)
			}
			return func() string { return l.token(t, nil) }
		}},
		{"its ServiceAccount deleted and created again", func(string) func() string {
			if err := kube.CoreV1().ServiceAccounts(l.ns).Delete(t.Context(), account, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			l.createAccount(t)
			return func() string { return l.token(t, nil) }
		}},
	} {
		token, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		next := loss.revoke(string(token))
		waitRefused(t, string(token))
		waitUntil(t, "the lead is lost", func(context.Context) error {
			if n := strings.Count(l.log.String(), `"Lost the lease,`); n < i+1 {
				return fmt.Errorf("%d times so far", n)
			}
			return nil
		})
		// What is wanted meanwhile is done later, and once.
		name := fmt.Sprintf("meanwhile-%d", i)
		foos.create(t, l.ns, name, 1)
		if code, body, err := l.get(t.Context(), "/livez"); err != nil || code != http.StatusOK {
			t.Errorf("/livez while the token is bad: %d %s %v", code, body, err)
		}
		replaceFile(t, file, []byte(next()))
		given := time.Now()
		leads := max(0, l.waitRenewal(given).Sub(given))
		foos.waitReady(t, l.ns, name, 1)
		ready := time.Since(given)
		wantSoon(t, "to lead again with a new token", leads, soon)
		figures = append(figures, fmt.Sprintf("%s: leads %s after it has a new one, object ready after %s", loss.what, seconds(leads), seconds(ready)))
	}
	l.wantCreatedOnce(t)
	l.stop()
	reportFault(t, faultRow{
		ID: "D7b", Fault: "the leader's token expires or is revoked, and comes late",
		Ours: strings.Join(figures, "; "),
		Peer: "none: client-go alone reads the file again after 50 s at most, refused or not",
	})
}

// shortLived returns a token of the replica's ServiceAccount that says to expire at a
// moment.
func (l *loner) shortLived(t *testing.T, expiry time.Time) string {
	t.Helper()
	parts := strings.Split(l.token(t, nil), ".")
	claims := map[string]any{}
	decode(t, parts[1], &claims)
	claims["exp"] = expiry.Unix()
	return sign(t, parts[0]+"."+encode(t, claims))
}

// boundToken returns a token that is good as long as there is a Pod.
func (l *loner) boundToken(t *testing.T) string {
	t.Helper()
	pod, err := kube.CoreV1().Pods(l.ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l.token(t, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
}

// wantCreatedOnce wants each Deployment of the replica to have been created once.
func (l *loner) wantCreatedOnce(t *testing.T) {
	t.Helper()
	for name, n := range l.created(t) {
		if n != 1 {
			t.Errorf("Deployment %s was created %d times", name, n)
		}
	}
}

// created counts how often the replica made each Deployment.
func (l *loner) created(t *testing.T) map[string]int {
	t.Helper()
	created := map[string]int{}
	for _, event := range l.requests(t) {
		if event.Verb == "create" && event.ObjectRef != nil && event.ObjectRef.Resource == "deployments" && event.ResponseStatus.Code < 300 {
			created[event.ObjectRef.Namespace+"/"+event.ObjectRef.Name]++
		}
	}
	return created
}

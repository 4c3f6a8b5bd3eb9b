// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// certificateReadAgain is how often client-go rereads the files of client certificates and API
// server CAs, plus a margin.
const certificateReadAgain = 5*time.Minute + 5*time.Second

// clientAuthorities returns two CAs whose client certificates the API server accepts. withdraw makes
// it reject those of the first one.
func clientAuthorities(t *testing.T) (first, second *framework.Authority, withdraw func(t *testing.T)) {
	t.Helper()
	path := filepath.Join(framework.Cluster().Dir, "kube-apiserver", "client-cert-auth-ca.crt")
	bundle, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { framework.ReplaceFile(t, path, bundle) }) // the API server watches it
	waitAnswer := func(t *testing.T, a *framework.Authority, want int) {
		t.Helper()
		mine := a.Sign(t, "somebody", time.Now().Add(time.Hour))
		config := rest.AnonymousClientConfig(framework.Cluster().Config())
		config.CertData, config.KeyData = mine.Certificate, mine.Key
		clustertest.WaitUntil(t, "the API server knows which CAs to trust", func(ctx context.Context) error {
			code, err := ask(ctx, config)
			if err == nil && code != want {
				err = fmt.Errorf("status %d, want %d", code, want)
			}
			return err
		})
	}
	first, second = framework.NewAuthority(t, "first-client-ca"), framework.NewAuthority(t, "second-client-ca")
	framework.ReplaceFile(t, path, slices.Concat(bundle, first.Pem(), second.Pem()))
	waitAnswer(t, second, http.StatusOK)
	return first, second, func(t *testing.T) {
		t.Helper()
		framework.ReplaceFile(t, path, slices.Concat(bundle, second.Pem()))
		waitAnswer(t, first, http.StatusUnauthorized)
	}
}

// TestFaultClientCertificateRotated replaces the daemon's client certificate while the old one is valid and, in another
// replica, after the API server has begun to reject it.
func TestFaultClientCertificateRotated(t *testing.T) {
	framework.Long(t)
	t.Parallel()
	first, second, withdraw := clientAuthorities(t)
	var took, leads time.Duration
	t.Run("both", func(t *testing.T) {
		t.Run("in time", func(t *testing.T) {
			t.Parallel()
			took = rotateInTime(t, second)
		})
		t.Run("too late", func(t *testing.T) {
			t.Parallel()
			leads = rotateTooLate(t, first, second, withdraw)
		})
	})
	framework.ReportFault(t, framework.FaultRow{
		ID: "D8", Fault: "the client certificate is replaced, in time and too late",
		Ours: fmt.Sprintf("in time: used after %s, 0 requests rejected; too late: leads %s after the new one", framework.Seconds(took), framework.Seconds(leads)),
		Peer: "none: client-go reads the files",
	})
}

// startCertified starts a replica with a client certificate of an authority. sign replaces the certificate, and returns
// when.
func startCertified(t *testing.T, a *framework.Authority, controllers string) (l *framework.Isolated,
	sign func(*framework.Authority) time.Time) {
	t.Helper()
	l = framework.NewIsolated(t)
	var certificateFile, keyFile string
	sign = func(a *framework.Authority) time.Time {
		p := a.Sign(t, l.User(), time.Now().Add(time.Hour))
		framework.ReplaceFile(t, keyFile, p.Key)
		framework.ReplaceFile(t, certificateFile, p.Certificate)
		return time.Now()
	}
	kubeconfig := framework.Kubeconfig(t, func(dir string, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		certificateFile, keyFile = filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
		user.ClientCertificate, user.ClientKey = certificateFile, keyFile
		sign(a)
	})
	return l.Start(t, kubeconfig, append(framework.ShortLease, "--controllers="+controllers)...), sign
}

// rotateInTime returns how long a replica took to use a new certificate.
func rotateInTime(t *testing.T, a *framework.Authority) (took time.Duration) {
	t.Helper()
	l, sign := startCertified(t, a, "status-aggregator")
	if ids := l.Credentials(t); len(ids) != 1 || !strings.HasPrefix(ids[0], "X509SHA256=") {
		t.Fatalf("credentials %q, want one certificate", ids)
	}
	rotated := sign(a)
	clustertest.WaitWithin(t, 2*certificateReadAgain, "the new certificate is used", func(context.Context) error {
		if ids := l.Credentials(t); len(ids) != 2 {
			return fmt.Errorf("credentials %q", ids)
		}
		return nil
	})
	took = time.Since(rotated)
	framework.WantSoon(t, "using the new certificate", took, certificateReadAgain)
	l.WaitRenewal(time.Now())
	if n := l.Unauthenticated(t); n > 0 {
		t.Errorf("%d requests were rejected while there was a valid certificate, want none", n)
	}
	l.Stop()
	return took
}

// rotateTooLate returns how long after it got a valid certificate a replica led again.
func rotateTooLate(t *testing.T, first, second *framework.Authority, withdraw func(*testing.T)) (leads time.Duration) {
	t.Helper()
	l, sign := startCertified(t, first, "icecream")
	framework.Icecreams.Create(t, l.Namespace, "before", 1)
	framework.Icecreams.WaitReady(t, l.Namespace, "before", 1)
	withdraw(t)
	l.WaitLog(`"Lost the lease,`) // because the API server rejects the certificate
	framework.Icecreams.Create(t, l.Namespace, "meanwhile", 1)
	given := sign(second)
	leads = max(0, l.WaitRenewalWithin(2*certificateReadAgain, given).Sub(given))
	framework.WantSoon(t, "leading again with a new certificate", leads, certificateReadAgain)
	framework.Icecreams.WaitReady(t, l.Namespace, "meanwhile", 1)
	framework.WantCreatedOnce(t, l.Requests(t))
	l.Stop()
	return leads
}

// TestFaultServerCARotated switches the API server to a certificate of another CA. First the
// daemon's CA file has both CAs in time. Then, in long mode, it gets the new CA too late.
func TestFaultServerCARotated(t *testing.T) {
	t.Parallel()
	l := framework.NewIsolated(t)
	year := time.Now().AddDate(1, 0, 0)
	first, second, third := framework.NewAuthority(t, "first-ca"), framework.NewAuthority(t, "second-ca"), framework.NewAuthority(t, "third-ca")
	var served atomic.Pointer[tls.Certificate]
	served.Store(first.Sign(t, "api", year).Load(t))
	server := clustertest.StartProxyAs(t, framework.Cluster(), served.Load)
	serve := func(a *framework.Authority) time.Time {
		served.Store(a.Sign(t, "api", year).Load(t))
		server.CloseClientConnections() // as in a restart
		return time.Now()
	}
	var bundle string
	kubeconfig := framework.Kubeconfig(t, func(dir string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		bundle = filepath.Join(dir, "ca.crt")
		framework.ReplaceFile(t, bundle, slices.Concat(first.Pem(), second.Pem()))
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = server.URL, bundle, nil
		user.TokenFile = filepath.Join(dir, "token")
		framework.ReplaceFile(t, user.TokenFile, []byte(l.Token(t, nil)))
	})
	l.Start(t, kubeconfig, "--controllers=status-aggregator")
	const lost = `"Lost the lease,`

	switched := serve(second)
	inTime := max(0, l.WaitRenewal(switched).Sub(switched))
	if n := strings.Count(l.Log.String(), lost); n > 0 {
		t.Errorf("the leader lost its Lease %d times although the file had the CA in time", n)
	}
	ours := fmt.Sprintf("in time: next renewal after %s", framework.Seconds(inTime))

	if !testing.Short() {
		serve(third)
		l.WaitLog(lost) // because it does not trust the API server
		l.WantLive(t.Context())
		framework.ReplaceFile(t, bundle, third.Pem())
		given := time.Now()
		late := max(0, l.WaitRenewalWithin(2*certificateReadAgain, given).Sub(given))
		framework.WantSoon(t, "leading again with the new CA", late, certificateReadAgain)
		ours += fmt.Sprintf("; too late: leads %s after the file has it", framework.Seconds(late))
	}
	l.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D8b", Fault: "the API server's certificate is from a new CA, which the CA file gets in time and too late",
		Ours: ours,
		Peer: "none: client-go reads the file",
	})
}

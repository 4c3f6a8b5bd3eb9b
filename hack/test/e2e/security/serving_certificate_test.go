// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// servedWithin is how soon the daemon must serve a new certificate.
const servedWithin = time.Minute

// TestFaultServingCertificateReplaced replaces the daemon's serving certificate, also by
// invalid ones.
func TestFaultServingCertificateReplaced(t *testing.T) {
	t.Parallel()
	l := framework.NewIsolated(t)
	kubeconfig, _ := l.TokenKubeconfig(t, l.Token(t, nil))
	a, dir := framework.NewAuthority(t, "serving-ca"), t.TempDir()
	year := time.Now().AddDate(1, 0, 0)
	put := func(certificate, key []byte) {
		framework.AsKubelet(t, dir, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	}
	first, second, third := a.Sign(t, "first", year), a.Sign(t, "second", year), a.Sign(t, "third", year)
	put(first.Certificate, first.Key)
	l.Start(t, kubeconfig, "--controllers=status-aggregator", "--tls-cert-file="+dir+"/tls.crt", "--tls-private-key-file="+dir+"/tls.key")
	waitShown := func(want string) time.Duration {
		since := time.Now()
		clustertest.WaitUntil(t, "the certificate "+want+" is served", func(context.Context) error {
			name, err := shownBy(l)
			if err == nil && name != want {
				err = errors.New(name)
			}
			return err
		})
		return time.Since(since)
	}
	waitShown("first")
	put(second.Certificate, second.Key)
	took := []time.Duration{waitShown("second")}
	// Two different errors, because the daemon does not log the same error again at once.
	for what, bad := range map[string]framework.Pair{"nothing": {}, "another certificate's key": {Certificate: third.Certificate, Key: second.Key}} {
		before := len(l.Log.String())
		put(bad.Certificate, bad.Key)
		clustertest.WaitUntil(t, "the log rejects "+what+" as a certificate", func(context.Context) error {
			if !slices.ContainsFunc(strings.Split(l.Log.String()[before:], "\n"), func(line string) bool {
				return strings.HasPrefix(line, "E") && strings.Contains(line, "dynamic_serving_content.go")
			}) {
				return errors.New("not yet")
			}
			return nil
		})
		if name, err := shownBy(l); err != nil || name != "second" {
			t.Errorf("%s: serves %s, %v, want the previous certificate", what, name, err)
		}
	}
	put(third.Certificate, third.Key)
	took = append(took, waitShown("third"))
	framework.WantSoon(t, "serving a new certificate", slices.Max(took), servedWithin)
	if bytes.Contains([]byte(l.Log.String()), third.Key) {
		t.Error("the log has a private key")
	}
	l.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D9", Fault: "the serving certificate is replaced like the kubelet does, also by invalid ones",
		Ours: fmt.Sprintf("a new one is served after %s, and after 2 invalid ones, which change nothing, in %s", framework.Seconds(took[0]), framework.Seconds(took[1])),
		Peer: "none: kube-controller-manager uses the same library",
	})
}

// shownBy returns the common name of the replica's serving certificate.
func shownBy(l *framework.Isolated) (string, error) {
	connection, err := dialTLS(strings.TrimPrefix(l.URL, "https://"), "http/1.1")
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// TestTLSVersionsAndCiphers tries each version and each cipher.
func TestTLSVersionsAndCiphers(t *testing.T) {
	t.Parallel()
	handshake := func(l *framework.Isolated, config *tls.Config) error {
		config.InsecureSkipVerify = true
		connection, err := tls.Dial("tcp", strings.TrimPrefix(l.URL, "https://"), config)
		if err == nil {
			connection.Close()
		}
		return err
	}
	versions := []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13}
	one := tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 // one that HTTP/2 insists on
	t.Run("flags", func(t *testing.T) {
		for name, tc := range map[string]struct {
			flags    []string
			versions []uint16
			ciphers  func(*tls.CipherSuite) bool // of TLS 1.2; nil: not checked
		}{
			"defaults": {nil, versions[2:], func(c *tls.CipherSuite) bool {
				return !c.Insecure &&
					strings.Contains(c.Name, "_ECDSA_")
			}},
			"at least TLS 1.3": {[]string{"--tls-min-version=VersionTLS13"}, versions[3:], nil},
			"one cipher": {[]string{"--tls-cipher-suites=" + tls.CipherSuiteName(one)}, versions[2:],
				func(c *tls.CipherSuite) bool { return c.ID == one }},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := startServing(t, tc.flags...)
				for _, version := range versions {
					err := handshake(l, &tls.Config{MinVersion: version, MaxVersion: version})
					if want := slices.Contains(tc.versions, version); want != (err == nil) {
						t.Errorf("%s: %v, want it accepted: %v", tls.VersionName(version), err, want)
					}
				}
				for _, cipher := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
					if tc.ciphers == nil || !slices.Contains(cipher.SupportedVersions, tls.VersionTLS12) {
						continue
					}
					err := handshake(l, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
						CipherSuites: []uint16{cipher.ID}})
					if want := tc.ciphers(cipher); want != (err == nil) {
						t.Errorf("%s: %v, want it accepted: %v", cipher.Name, err, want)
					}
				}
				l.Stop()
			})
		}
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// servedWithin is within what a new serving certificate is shown, by the issue.
const servedWithin = time.Minute

// TestFaultTheServingCertificateIsReplaced replaces the certificate that the daemon shows,
// also by what is none.
func TestFaultTheServingCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	l := newLoner(t)
	kubeconfig, _ := l.tokenKubeconfig(t, l.token(t, nil))
	a, dir := newAuthority(t, "serving-ca"), t.TempDir()
	year := time.Now().AddDate(1, 0, 0)
	put := func(certificate, key []byte) {
		asKubelet(t, dir, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	}
	first, second, third := a.sign(t, "first", year), a.sign(t, "second", year), a.sign(t, "third", year)
	put(first.certificate, first.key)
	l.start(t, kubeconfig, "--controllers=status-aggregator", "--tls-cert-file="+dir+"/tls.crt", "--tls-private-key-file="+dir+"/tls.key")
	address := strings.TrimPrefix(l.url, "https://")
	shown := func() (string, error) {
		connection, err := dialTLS(address, "http/1.1")
		if err != nil {
			return "", err
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
	}
	waitShown := func(want string) time.Duration {
		since := time.Now()
		waitUntil(t, "the certificate "+want+" is shown", func(context.Context) error {
			name, err := shown()
			if err == nil && name != want {
				err = errors.New(name)
			}
			return err
		})
		return time.Since(since)
	}
	waitShown("first")
	// Meanwhile nobody is refused.
	ctx, cancel := context.WithCancel(t.Context())
	handshakes := 0
	var connecting sync.WaitGroup
	connecting.Go(func() {
		for ctx.Err() == nil {
			if _, err := shown(); err != nil {
				t.Errorf("a handshake fails: %v", err)
			}
			handshakes++
			time.Sleep(20 * time.Millisecond)
		}
	})

	put(second.certificate, second.key)
	took := []time.Duration{waitShown("second")}
	for what, bad := range map[string]pair{
		"garbage":                  {[]byte("garbage"), []byte("garbage")},
		"nothing":                  {},
		"the key of another":       {third.certificate, second.key},
		"a certificate cut in two": {third.certificate[:len(third.certificate)/2], third.key},
	} {
		before := len(l.log.String())
		put(bad.certificate, bad.key)
		waitUntil(t, "the log says that "+what+" is no certificate", func(context.Context) error {
			if !slices.ContainsFunc(strings.Split(l.log.String()[before:], "\n"), func(line string) bool {
				return strings.HasPrefix(line, "E") && strings.Contains(line, "dynamic_serving_content.go")
			}) {
				return errors.New("not yet")
			}
			return nil
		})
		if name, err := shown(); err != nil || name != "second" {
			t.Errorf("%s: %s is shown, %v, want the certificate before", what, name, err)
		}
	}
	put(third.certificate, third.key)
	took = append(took, waitShown("third"))
	wantSoon(t, "to show a new certificate", slices.Max(took), servedWithin)
	cancel()
	connecting.Wait()
	if bytes.Contains([]byte(l.log.String()), third.key) {
		t.Error("the log shows a key")
	}
	l.stop()
	reportFault(t, faultRow{
		ID: "D9", Fault: "the serving certificate is replaced as the kubelet does, also by bad ones",
		Ours: fmt.Sprintf("a new one is shown after %s, and after 4 bad ones, which change nothing, %s; 0 of %d handshakes failed", seconds(took[0]), seconds(took[1]), handshakes),
		Peer: "none: kube-controller-manager serves by the same library",
	})
}

// TestVersionsAndCiphersOfTLS tries each version and each cipher.
func TestVersionsAndCiphersOfTLS(t *testing.T) {
	t.Parallel()
	handshake := func(l *loner, config *tls.Config) error {
		config.InsecureSkipVerify = true
		connection, err := tls.Dial("tcp", strings.TrimPrefix(l.url, "https://"), config)
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
			ciphers  func(*tls.CipherSuite) bool // of TLS 1.2; nil: not looked at
		}{
			"defaults":         {nil, versions[2:], func(c *tls.CipherSuite) bool { return !c.Insecure && strings.Contains(c.Name, "_ECDSA_") }},
			"at least TLS 1.3": {[]string{"--tls-min-version=VersionTLS13"}, versions[3:], nil},
			"one cipher":       {[]string{"--tls-cipher-suites=" + tls.CipherSuiteName(one)}, versions[2:], func(c *tls.CipherSuite) bool { return c.ID == one }},
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
					err := handshake(l, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{cipher.ID}})
					if want := tc.ciphers(cipher); want != (err == nil) {
						t.Errorf("%s: %v, want it accepted: %v", cipher.Name, err, want)
					}
				}
				l.stop()
			})
		}
	})
}

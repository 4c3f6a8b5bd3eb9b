// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority is a CA that signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is a certificate with its key, both PEM-encoded.
type Pair struct{ Certificate, Key []byte }

// NewAuthority returns a CA with a new key.
func NewAuthority(t *testing.T, name string) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{certificate, key}
}

// Pem returns the CA's certificate, PEM-encoded.
func (a *Authority) Pem() []byte { return encodeCertificate(a.certificate.Raw) }

// File returns the path of a file with the CA's certificate.
func (a *Authority) File(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	ReplaceFile(t, path, a.Pem())
	return path
}

// Sign returns a certificate for a user, or for a server of this name or at 127.0.0.1, that expires at the given time.
func (a *Authority) Sign(t *testing.T, name string, end time.Time) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     end,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{name},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{encodeCertificate(raw), encoded}
}

// Files returns the paths of files with the certificate and its key.
func (p Pair) Files(t *testing.T) (certificate, key string) {
	t.Helper()
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	ReplaceFile(t, certificate, p.Certificate)
	ReplaceFile(t, key, p.Key)
	return certificate, key
}

// Load returns the certificate in the form that servers and clients use.
func (p Pair) Load(t *testing.T) *tls.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate
}

func encodeCertificate(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
}

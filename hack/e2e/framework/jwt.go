// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/util/keyutil"
)

// SignToken returns a token with this header and these claims, signed with the API server's
// key.
func SignToken(t *testing.T, content string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Cluster().Dir, "kube-apiserver", "sa-signer.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(content))
	one, two, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(one.FillBytes(make([]byte, 32)), two.FillBytes(make([]byte, 32))...)
	return content + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// DecodePart decodes one part of a token.
func DecodePart(t *testing.T, part string, into any) {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// EncodePart encodes one part of a token.
func EncodePart(t *testing.T, content any) string {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

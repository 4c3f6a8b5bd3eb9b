// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/keyutil"
)

// Resign returns a token like the given one, but with these claims changed. It is signed with
// the API server's key.
func Resign(t *testing.T, token string, changed map[string]any) string {
	t.Helper()
	parts, claims := strings.Split(token, "."), map[string]any{}
	DecodePart(t, parts[1], &claims)
	maps.Copy(claims, changed)
	data, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(Cluster().Dir, "kube-apiserver", "sa-signer.key"))
	if err != nil {
		t.Fatal(err)
	}
	content := parts[0] + "." + base64.RawURLEncoding.EncodeToString(data)
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

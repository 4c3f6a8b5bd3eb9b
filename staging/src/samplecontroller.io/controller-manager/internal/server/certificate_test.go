// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

// A full disk or a crash leaves files that are missing, empty or cut off.
func TestIncompletePairIsReplaced(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	none := []byte(nil) // no file
	for name, tc := range map[string]struct {
		certificate, key []byte
		replaced         bool
		err              string
	}{
		"complete":            {certificate, key, false, ""},
		"key missing":         {certificate, none, true, ""},
		"key empty":           {certificate, []byte{}, true, ""},
		"key cut off":         {certificate, key[:len(key)/2], true, ""},
		"certificate missing": {none, key, false, "test-manager.crt is missing or holds no PEM"},
		"certificate empty":   {[]byte{}, key, false, "test-manager.crt is missing or holds no PEM"},
		"both empty":          {[]byte{}, []byte{}, true, ""},
		"certificate alone":   {[]byte{}, none, true, ""},
		"mismatch":            {certificate, otherKey, false, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.SecureServing.ServerCert.CertDirectory = t.TempDir()
			base := filepath.Join(o.SecureServing.ServerCert.CertDirectory, "test-manager")
			for file, content := range map[string][]byte{base + ".crt": tc.certificate, base + ".key": tc.key} {
				if content == nil {
					continue
				}
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			config, err := o.Config(t.Context(), startAPIServer(t))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("Config: error %v, want one with %q", err, tc.err)
				}
				if kept, err := os.ReadFile(base + ".key"); err != nil || string(kept) != string(tc.key) {
					t.Errorf("the key is lost: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("Config: %v", err)
			}
			start(t, config) // ends what Config made
			served, _ := config.SecureServing.Cert.CurrentCertKeyContent()
			if replaced := string(served) != string(certificate); replaced != tc.replaced {
				t.Errorf("the pair is replaced: %t, want %t", replaced, tc.replaced)
			}
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/klog/v2"
)

// removeIncompletePair removes the pair in --cert-dir if its key is missing or holds no PEM, so
// that a new pair is made. A full disk or a crash leaves such a pair, because the key is written
// last, and it would make all later starts fail. A key without its certificate was not made here,
// so it is kept.
func removeIncompletePair(ctx context.Context, o apiserveroptions.GeneratableKeyCert) error {
	if o.CertDirectory == "" || o.CertKey != (apiserveroptions.CertKey{}) {
		return nil
	}
	base := filepath.Join(o.CertDirectory, o.PairName)
	certificateExists, hasCertificate, err := readPEM(base + ".crt")
	if err != nil {
		return err
	}
	keyExists, hasKey, err := readPEM(base + ".key")
	if err != nil {
		return err
	}
	if hasKey && !hasCertificate {
		return fmt.Errorf("--cert-dir: %s.key has no certificate: %[1]s.crt is missing or holds no PEM. "+
			"Put the certificate there, or remove the key to have a self-signed pair made", base)
	}
	if hasKey || !certificateExists && !keyExists {
		return nil
	}
	klog.FromContext(ctx).Info("Replacing an incomplete self-signed certificate: its key is missing or holds no PEM", "removed", base+".{crt,key}")
	for _, file := range []string{base + ".crt", base + ".key"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--cert-dir: removing an incomplete pair: %w", err)
		}
	}
	return nil
}

// readPEM returns whether a file in --cert-dir exists, and whether it holds PEM.
func readPEM(file string) (exists, valid bool, err error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("--cert-dir: %w", err)
	}
	block, _ := pem.Decode(content)
	return true, block != nil, nil
}

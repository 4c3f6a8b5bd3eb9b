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

// removeIncompletePair removes the pair in --cert-dir if one of its files is missing or holds
// no PEM, so that a new pair is made. A full disk or a crash leaves such a pair, and it would
// make all later starts fail.
func removeIncompletePair(ctx context.Context, o apiserveroptions.GeneratableKeyCert) error {
	if o.CertDirectory == "" || o.CertKey != (apiserveroptions.CertKey{}) {
		return nil
	}
	var found []string
	complete := true
	for _, extension := range []string{".crt", ".key"} {
		file := filepath.Join(o.CertDirectory, o.PairName+extension)
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--cert-dir: %w", err)
		}
		if err == nil {
			found = append(found, file)
		}
		block, _ := pem.Decode(content)
		complete = complete && block != nil
	}
	if complete || len(found) == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("Replacing an incomplete self-signed certificate: a file of the pair is missing or holds no PEM", "removed", found)
	for _, file := range found {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("--cert-dir: removing an incomplete pair: %w", err)
		}
	}
	return nil
}

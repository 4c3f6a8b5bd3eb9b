// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/internal/connection"
)

// validateFlags returns errors that the libraries report only when the options are applied:
// one at a time, without the name of the flag, or not at all.
func (o *Options) validateFlags() []error {
	var errs []error
	check := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	serving := o.SecureServing
	_, err := cliflag.TLSVersion(serving.MinTLSVersion)
	if err != nil {
		err = fmt.Errorf("%w, must be one of %s", err, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	check("tls-min-version", err)
	_, err = cliflag.TLSCipherSuites(serving.CipherSuites)
	check("tls-cipher-suites", err)
	_, err = cliflag.TLSCurvePreferences(serving.CurvePreferences)
	check("tls-curve-preferences", err)
	if key := serving.ServerCert.CertKey; (key.CertFile == "") != (key.KeyFile == "") {
		check("tls-cert-file", fmt.Errorf("%q with --tls-private-key-file=%q: set both or neither", key.CertFile, key.KeyFile))
	}
	_, err = path.NewAuthorizer(o.Authorization.AlwaysAllowPaths)
	check("authorization-always-allow-paths", err)
	check("authentication-token-webhook-cache-ttl", notNegative(o.Authentication.CacheTTL))
	check("authorization-webhook-cache-authorized-ttl", notNegative(o.Authorization.AllowCacheTTL))
	check("authorization-webhook-cache-unauthorized-ttl", notNegative(o.Authorization.DenyCacheTTL))
	if streams := serving.HTTP2MaxStreamsPerConnection; streams < 0 {
		check("http2-max-streams-per-connection", fmt.Errorf("%d must be at least 0; 0 means Go's default", streams))
	}
	return errs
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%v must be at least 0s; 0s disables the cache", d)
	}
	return nil
}

// CheckFiles returns the first error in the files that the options name.
func (o *Options) CheckFiles() error {
	for flag, file := range map[string]string{
		"--authentication-kubeconfig": o.Authentication.RemoteKubeConfigFile,
		"--authorization-kubeconfig":  o.Authorization.RemoteKubeConfigFile,
	} {
		if file == "" {
			continue
		}
		if _, err := connection.Load("", file); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return o.checkFiles()
}

// checkFiles returns the first error in the certificate and key files.
func (o *Options) checkFiles() error {
	if key := o.SecureServing.ServerCert.CertKey; key.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(key.CertFile, key.KeyFile); err != nil {
			return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
		}
	}
	for _, key := range o.SecureServing.SNICertKeys {
		if _, err := tls.LoadX509KeyPair(key.CertFile, key.KeyFile); err != nil {
			return fmt.Errorf("--tls-sni-cert-key: %w", err)
		}
	}
	for flag, file := range map[string]string{
		"--client-ca-file":               o.Authentication.ClientCert.ClientCA,
		"--requestheader-client-ca-file": o.Authentication.RequestHeader.ClientCAFile,
	} {
		if file == "" {
			continue
		}
		if _, err := cert.NewPool(file); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

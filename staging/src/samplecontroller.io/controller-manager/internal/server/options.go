// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	apiserver "k8s.io/apiserver/pkg/server"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	cmoptions "k8s.io/controller-manager/options"

	"samplecontroller.io/controller-manager/internal/version"
)

// Options configures the HTTPS endpoints and their access control, with
// kube-controller-manager's flags.
type Options struct {
	Name           string
	SecureServing  *apiserveroptions.SecureServingOptions
	Authentication *apiserveroptions.DelegatingAuthenticationOptions
	Authorization  *apiserveroptions.DelegatingAuthorizationOptions
	Debugging      *cmoptions.DebuggingOptions
}

// NewOptions returns the default options of a component with this name and port. It does not
// serve if port is 0. The probes are open to all callers.
func NewOptions(name string, port int) *Options {
	o := &Options{
		Name:           name,
		SecureServing:  apiserveroptions.NewSecureServingOptions(),
		Authentication: apiserveroptions.NewDelegatingAuthenticationOptions(),
		Authorization:  apiserveroptions.NewDelegatingAuthorizationOptions(),
		Debugging:      cmoptions.RecommendedDebuggingOptions(),
	}
	o.SecureServing.BindPort = port
	o.SecureServing.HTTP2MaxStreamsPerConnection = maxStreams
	// Without a directory, a self-signed certificate is kept in memory.
	o.SecureServing.ServerCert.CertDirectory = ""
	o.SecureServing.ServerCert.PairName = name
	// Without a kubeconfig, and outside of a cluster, no caller is authorized.
	o.Authentication.RemoteKubeConfigFileOptional = true
	o.Authorization.RemoteKubeConfigFileOptional = true
	// Only client certificates need the lookup.
	o.Authentication.TolerateInClusterLookupFailure = true
	o.Authorization.AlwaysAllowPaths = []string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"}
	return o
}

// AddFlags adds the flags to kube-controller-manager's sections.
func (o *Options) AddFlags(sections *cliflag.NamedFlagSets) {
	o.Debugging.AddFlags(sections.FlagSet("debugging"))
	serving := sections.FlagSet("secure serving")
	o.SecureServing.AddFlags(serving)
	serving.Lookup("cert-dir").Usage += " If empty, a self-signed certificate is kept in memory. A pair whose key is missing or holds no PEM is replaced."
	serving.Lookup("tls-cert-file").Usage = "File containing the x509 certificate for HTTPS, with the CA certificate, if any, after the server certificate. " +
		"If neither this nor --tls-private-key-file is set, a self-signed pair is made: in --cert-dir, or in memory if that is empty."
	serving.Lookup("secure-port").Usage = "The port on which to serve HTTPS with authentication and authorization. If 0, nothing is served: no probes and no metrics."
	authentication := sections.FlagSet("authentication")
	o.Authentication.AddFlags(authentication)
	authentication.Lookup("authentication-kubeconfig").Usage = "kubeconfig file of the cluster that authenticates callers: it must permit creating tokenreviews.authentication.k8s.io. " +
		"If empty, it is the cluster of --kubeconfig. In no cluster, no token is accepted."
	authentication.Lookup("authentication-tolerate-lookup-failure").Usage = "If true, client certificates are rejected until the client CA bundle " +
		"can be read from the cluster. If false, the process does not start without it."
	authorization := sections.FlagSet("authorization")
	o.Authorization.AddFlags(authorization)
	authorization.Lookup("authorization-kubeconfig").Usage = "kubeconfig file of the cluster that authorizes callers: it must permit creating subjectaccessreviews.authorization.k8s.io. " +
		"If empty, it is the cluster of --kubeconfig. In no cluster, only the paths in --authorization-always-allow-paths are served."
}

// Validate returns one error for each invalid flag.
func (o *Options) Validate() []error {
	errs := o.Debugging.Validate()
	if port := o.SecureServing.BindPort; port < 0 || port > 65535 {
		errs = append(errs, fmt.Errorf("--secure-port %d must be between 0 and 65535; with 0, nothing is served", port))
	} else {
		errs = append(errs, o.SecureServing.Validate()...)
	}
	errs = append(errs, o.Authentication.Validate()...)
	errs = append(errs, o.Authorization.Validate()...)
	return append(errs, o.validateFlags()...)
}

// Config returns the resulting configuration. It reads the files that the flags name and opens
// the port, but serves nothing yet. Callers are authenticated and authorized by the cluster of
// kubeconfig, unless the options name another one; if kubeconfig is empty, by the cluster that
// the process runs in. Config does not wait for that cluster, except with
// --authentication-tolerate-lookup-failure=false. Then the cluster must answer within 10
// seconds, and before ctx ends.
func (o *Options) Config(ctx context.Context, kubeconfig string) (Config, error) {
	c := Config{Name: o.Name, Debugging: *o.Debugging.DebuggingConfiguration}
	if o.SecureServing.BindPort == 0 && o.SecureServing.Listener == nil {
		return c, nil
	}
	if err := removeIncompletePair(ctx, o.SecureServing.ServerCert); err != nil {
		return Config{}, err
	}
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return Config{}, fmt.Errorf("--cert-dir: making a self-signed certificate: %w", err)
	}
	if err := o.CheckFiles(); err != nil {
		return Config{}, err
	}
	if err := o.SecureServing.ApplyTo(&c.SecureServing); err != nil {
		// Everything else that can fail has been checked.
		return Config{}, fmt.Errorf("--bind-address, --secure-port: %w", err)
	}
	if c.SecureServing == nil {
		return c, nil
	}
	c.SecureServing.Listener = newConnectionLimiter(c.SecureServing.Listener, connectionLimit(maxFiles()))
	if err := o.delegate(ctx, &c, kubeconfig); err != nil {
		c.SecureServing.Listener.Close()
		return Config{}, err
	}
	return c, nil
}

// followClientCAs makes the server accept client certificates signed by the cluster's CAs,
// unless the options name a CA file.
func (o *Options) followClientCAs(ctx context.Context, a *apiserveroptions.DelegatingAuthenticationOptions) error {
	skip := a.SkipInClusterLookup || a.ClientCert != (apiserveroptions.ClientCertAuthenticationOptions{})
	a.SkipInClusterLookup = true // the library would block until the API server answers
	if skip {
		return nil
	}
	cas, err := newClientCAs(ctx, a.RemoteKubeConfigFile, version.UserAgent(o.Name, "client-ca"), !a.TolerateInClusterLookupFailure)
	if err != nil || cas == nil {
		return err
	}
	a.ClientCert.CAContentProvider = cas
	return nil
}

// identify returns a wrapper that sets the user agent of a client that apiserver's options make.
// These would use client-go's, which has the version of client-go.
func (o *Options) identify(purpose string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return identified{next, version.UserAgent(o.Name, purpose)}
	}
}

// identified is a transport that sets the user agent.
type identified struct {
	http.RoundTripper
	userAgent string
}

// RoundTrip implements http.RoundTripper.
func (t identified) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.userAgent)
	return t.RoundTripper.RoundTrip(r)
}

// delegate makes the API server authenticate and authorize callers.
func (o *Options) delegate(ctx context.Context, c *Config, kubeconfig string) error {
	authentication, authorization := *o.Authentication, *o.Authorization
	authenticationFlag, authorizationFlag := "--authentication-kubeconfig", "--authorization-kubeconfig"
	if authentication.RemoteKubeConfigFile == "" {
		authentication.RemoteKubeConfigFile, authenticationFlag = kubeconfig, "--kubeconfig"
	}
	if authorization.RemoteKubeConfigFile == "" {
		authorization.RemoteKubeConfigFile, authorizationFlag = kubeconfig, "--kubeconfig"
	}
	c.Authentication, c.Authorization = &apiserver.AuthenticationInfo{}, &apiserver.AuthorizationInfo{}
	authentication.WithCustomRoundTripper(o.identify("authentication"))
	authorization.WithCustomRoundTripper(o.identify("authorization"))
	err := o.followClientCAs(ctx, &authentication)
	if err == nil {
		err = authentication.ApplyTo(c.Authentication, c.SecureServing, nil)
	}
	if err != nil {
		return fmt.Errorf("%s: setting up delegated authentication: %w", authenticationFlag, err)
	}
	open, err := path.NewAuthorizer(authorization.AlwaysAllowPaths)
	if err != nil {
		return fmt.Errorf("--authorization-always-allow-paths: %w", err)
	}
	c.Authentication.Authenticator = authenticatedOnly{c.Authentication.Authenticator, open}
	authorization.AlwaysAllowPaths = nil // open paths do not show failure reasons
	if err := authorization.ApplyTo(c.Authorization); err != nil {
		return fmt.Errorf("%s: setting up delegated authorization: %w", authorizationFlag, err)
	}
	c.Reasons = c.Authorization.Authorizer
	c.Authorization.Authorizer, err = union.New(
		union.NamedAuthorizer{AuthorizerName: "open-paths", Authorizer: open},
		union.NamedAuthorizer{AuthorizerName: "delegated", Authorizer: c.Reasons},
	)
	return err
}

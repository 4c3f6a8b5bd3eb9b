// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"

	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	apiserver "k8s.io/apiserver/pkg/server"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	cmoptions "k8s.io/controller-manager/options"
)

// Options say what to serve to whom, with the flags that kube-controller-manager
// has for it.
type Options struct {
	Name           string
	SecureServing  *apiserveroptions.SecureServingOptions
	Authentication *apiserveroptions.DelegatingAuthenticationOptions
	Authorization  *apiserveroptions.DelegatingAuthorizationOptions
	Debugging      *cmoptions.DebuggingOptions
}

// NewOptions returns the options of a component of the given name that serves on
// the given port; 0: it does not serve. The probes are open to all.
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
	// Without a directory a self-signed certificate stays in memory.
	o.SecureServing.ServerCert.CertDirectory = ""
	o.SecureServing.ServerCert.PairName = name
	// Without a kubeconfig, and outside a cluster, nobody is authorised.
	o.Authentication.RemoteKubeConfigFileOptional = true
	o.Authorization.RemoteKubeConfigFileOptional = true
	// Only client certificates need what is looked up.
	o.Authentication.TolerateInClusterLookupFailure = true
	o.Authorization.AlwaysAllowPaths = []string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"}
	return o
}

// AddFlags adds the flags in kube-controller-manager's sections.
func (o *Options) AddFlags(sections *cliflag.NamedFlagSets) {
	o.Debugging.AddFlags(sections.FlagSet("debugging"))
	o.SecureServing.AddFlags(sections.FlagSet("secure serving"))
	authentication := sections.FlagSet("authentication")
	o.Authentication.AddFlags(authentication)
	authentication.Lookup("authentication-tolerate-lookup-failure").Usage = "If true, no client certificate is accepted until their authorities " +
		"can be looked up in the cluster. If false, the process does not start without them."
	o.Authorization.AddFlags(sections.FlagSet("authorization"))
}

// Validate returns all that is wrong, by the names of the flags.
func (o *Options) Validate() []error {
	errs := o.Debugging.Validate()
	errs = append(errs, o.SecureServing.Validate()...)
	errs = append(errs, o.Authentication.Validate()...)
	errs = append(errs, o.Authorization.Validate()...)
	return append(errs, o.validateFlags()...)
}

// Config returns what the options come to. It reads the files that they name and
// opens the port, but serves nothing yet. Callers are looked up in the cluster of
// kubeconfig unless the options name another; empty: in that of the Pod. Nothing waits for
// that cluster, but with --authentication-tolerate-lookup-failure=false: then it must
// answer within 10 seconds, and before ctx ends.
func (o *Options) Config(ctx context.Context, kubeconfig string) (Config, error) {
	c := Config{Name: o.Name, Debugging: *o.Debugging.DebuggingConfiguration}
	if o.SecureServing.BindPort == 0 && o.SecureServing.Listener == nil {
		return c, nil
	}
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return Config{}, fmt.Errorf("--cert-dir: making a self-signed certificate: %w", err)
	}
	if err := o.checkFiles(); err != nil {
		return Config{}, err
	}
	if err := o.SecureServing.ApplyTo(&c.SecureServing); err != nil {
		// All else that it may find wrong has been checked.
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

// followClientCAs has client certificates accepted that the cluster's authorities have
// signed, unless the options name others.
func followClientCAs(ctx context.Context, o *apiserveroptions.DelegatingAuthenticationOptions) error {
	skip := o.SkipInClusterLookup || o.ClientCert != (apiserveroptions.ClientCertAuthenticationOptions{})
	o.SkipInClusterLookup = true // the library would wait for the API server
	if skip {
		return nil
	}
	cas, err := newClientCAs(ctx, o.RemoteKubeConfigFile, !o.TolerateInClusterLookupFailure)
	if err != nil || cas == nil {
		return err
	}
	o.ClientCert.CAContentProvider = cas
	return nil
}

// delegate has the API server decide who asks and what they may.
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
	err := followClientCAs(ctx, &authentication)
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
	authorization.AlwaysAllowPaths = nil // a path that is open to all shows no reasons
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

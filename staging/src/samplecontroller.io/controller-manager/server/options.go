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
	o.Authorization.AlwaysAllowPaths = []string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"}
	return o
}

// AddFlags adds the flags in kube-controller-manager's sections.
func (o *Options) AddFlags(sections *cliflag.NamedFlagSets) {
	o.Debugging.AddFlags(sections.FlagSet("debugging"))
	o.SecureServing.AddFlags(sections.FlagSet("secure serving"))
	o.Authentication.AddFlags(sections.FlagSet("authentication"))
	o.Authorization.AddFlags(sections.FlagSet("authorization"))
}

// Validate returns all that is wrong, by the names of the flags.
func (o *Options) Validate() []error {
	errs := o.Debugging.Validate()
	errs = append(errs, o.SecureServing.Validate()...)
	errs = append(errs, o.Authentication.Validate()...)
	errs = append(errs, o.Authorization.Validate()...)
	return append(errs, o.mistakes()...)
}

// Config returns what the options come to. It reads the files that they name and
// opens the port, but serves nothing yet. Who asks is looked up in the cluster of
// kubeconfig unless the options name another; empty: in that of the Pod. That may take
// 10 seconds if the cluster does not answer, and is given up when ctx ends: then the
// error is why that did.
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
	c.SecureServing.Listener = newCrowd(c.SecureServing.Listener, connectionLimit(maxFiles()))
	if err := o.delegate(ctx, &c, kubeconfig); err != nil {
		c.SecureServing.Listener.Close()
		return Config{}, err
	}
	return c, nil
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
	lookups := &lookups{}
	authentication.WithCustomRoundTripper(lookups.boundTo(ctx))
	if err := authentication.ApplyTo(c.Authentication, c.SecureServing, nil); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // what failed because of that would say nothing
		}
		return fmt.Errorf("%s: setting up delegated authentication: %w", authenticationFlag, err)
	}
	lookups.over.Store(true)
	open, err := path.NewAuthorizer(authorization.AlwaysAllowPaths)
	if err != nil {
		return fmt.Errorf("--authorization-always-allow-paths: %w", err)
	}
	c.Authentication.Authenticator = named{c.Authentication.Authenticator, open}
	authorization.AlwaysAllowPaths = nil // who may know a reason is not decided by these
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

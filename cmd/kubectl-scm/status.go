// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/controller-manager/debug"
)

// statusOptions select the replica to query, and how.
type statusOptions struct {
	kubeconfig, reader                string
	overrides                         clientcmd.ConfigOverrides
	server, pod, certificateAuthority string
	insecure                          bool
	output                            string
	timeout                           time.Duration
}

// newStatusCommand returns the subcommand that prints what the controllers of a replica
// are doing.
func newStatusCommand() *cobra.Command {
	o := &statusOptions{output: "text", timeout: 30 * time.Second}
	command := &cobra.Command{
		Use:   "status [controller [namespace/object]]",
		Short: "Print what the controllers are doing.",
		Long: `Print what the controllers are doing: all of them, one with its last syncs, or what
one does about an object and why.

The command queries the leader's Pod through a port-forward. --pod selects another
replica, --server another address.

Your own credentials go only to the API server. The replica gets a token of the
ServiceAccount ` + reader + `, which is valid for 10 minutes.
To request it you need the Role of the same name in the daemon's namespace.`,
		Example: `  kubectl scm status
  kubectl scm status foo
  kubectl scm status foo default/example-foo
  kubectl scm status --server=https://127.0.0.1:10261 --insecure-skip-tls-verify`,
		Args:              atMostOneObject,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			path, err := pagePath(args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("no answer within %v", o.timeout))
			defer cancel()
			content, err := o.get(ctx, cmd.ErrOrStderr(), path)
			if err != nil {
				return withCause(ctx, err)
			}
			return o.print(cmd.OutOrStdout(), len(args), content)
		},
	}
	o.addFlags(command.Flags())
	// the flag exists
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (o *statusOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.server, "server", "", "Address of the replica to query, such as https://127.0.0.1:10261.")
	fs.StringVar(&o.pod, "pod", "", "Pod to query instead of the leader's.")
	fs.StringVar(&o.reader, "status-reader", reader, "ServiceAccount whose token the replica gets. A kustomize namePrefix changes its name.")
	fs.StringVar(&o.certificateAuthority, "certificate-authority", "", "Path to a CA certificate for --server.")
	fs.BoolVar(&o.insecure, "insecure-skip-tls-verify", false, "Do not verify the certificate of --server. Any server at that address then sees the token.")
	fs.StringVarP(&o.output, "output", "o", o.output, "Output format: text or json.")
	fs.DurationVar(&o.timeout, "timeout", o.timeout, "How long the whole command may take.")

	// The same as kubectl, except for the names used above.
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file.")
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ClusterOverrideFlags = clientcmd.ClusterOverrideFlags{}
	flags.AuthOverrideFlags.Username, flags.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	flags.ContextOverrideFlags.Namespace.Default = daemon
	flags.ContextOverrideFlags.Namespace.Description = "Namespace of the daemon."
	clientcmd.BindOverrideFlags(&o.overrides, fs, flags)
}

// validate returns the first invalid flag.
func (o *statusOptions) validate() error {
	switch {
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("invalid --output %q: must be text or json", o.output)
	case o.server != "" && o.pod != "":
		return errors.New("--pod and --server are mutually exclusive: each selects the replica to query")
	case o.server != "" && !strings.HasPrefix(o.server, "https://"):
		return fmt.Errorf("invalid --server %q: must begin with https://", o.server)
	case o.server == "" && (o.insecure || o.certificateAuthority != ""):
		return errors.New("--certificate-authority and --insecure-skip-tls-verify require --server")
	case o.insecure && o.certificateAuthority != "":
		return errors.New("--certificate-authority and --insecure-skip-tls-verify are mutually exclusive")
	case o.timeout <= 0:
		return fmt.Errorf("invalid --timeout %v: must be positive", o.timeout)
	}
	return nil
}

// atMostOneObject rejects more arguments than a controller and an object.
func atMostOneObject(_ *cobra.Command, args []string) error {
	if len(args) > 2 {
		return fmt.Errorf("too many arguments %q; usage: status [controller [namespace/object]]", args[2:])
	}
	return nil
}

// pagePath returns the path of the page for the arguments.
func pagePath(args []string) (string, error) {
	if len(args) == 0 {
		return debug.Path, nil
	}
	if args[0] == "" || strings.Contains(args[0], "/") {
		return "", fmt.Errorf("%q is not a controller; usage: status [controller [namespace/object]]", args[0])
	}
	path := debug.Path + "/" + url.PathEscape(args[0])
	if len(args) == 1 {
		return path, nil
	}
	namespace, name, ok := strings.Cut(args[1], "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is not an object: use <namespace>/<name>, for example default/example-foo", args[1])
	}
	return path + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name), nil
}

// get returns the page at path of the selected replica. It prints the replica's Pod to
// progress, unless the user gave its address.
func (o *statusOptions) get(ctx context.Context, progress io.Writer, path string) ([]byte, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	c := cluster{client: client, namespace: o.overrides.Context.Namespace, reader: o.reader}
	if o.server != "" {
		token, err := c.readerToken(ctx)
		if err != nil {
			return nil, err
		}
		return get(ctx, strings.TrimSuffix(o.server, "/"), token,
			rest.TLSClientConfig{Insecure: o.insecure, CAFile: o.certificateAuthority}, path)
	}
	pod := o.pod
	if pod == "" {
		if pod, err = c.leaderPod(ctx); err != nil {
			return nil, err
		}
	}
	token, err := c.readerToken(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "Querying Pod %s/%s\n", c.namespace, pod)
	forwarding, err := c.forward(ctx, config, pod)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port to Pod %s/%s: %w", c.namespace, pod, err)
	}
	defer forwarding.stop()
	// The API server and the kubelet connect to the Pod, so verifying its certificate adds
	// nothing.
	content, err := get(ctx, "https://"+forwarding.address, token, rest.TLSClientConfig{Insecure: true}, path)
	return content, forwarding.failure.explain(err)
}

// withCause adds the timeout to an error that it caused.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// print prints the page for the given number of arguments, as text or as the original JSON.
func (o *statusOptions) print(out io.Writer, args int, content []byte) error {
	var report debug.Report
	var explanation debug.Explanation
	var page any = &report
	if args == 2 {
		page = &explanation
	}
	if err := json.Unmarshal(content, page); err != nil {
		return fmt.Errorf("decoding the response, which is not from a %s: %w", daemon, err)
	}
	var missing error
	if args == 2 && !explanation.Found {
		missing = errors.New("object not found") // why is on the page
	}
	if o.output == "json" {
		_, err := out.Write(content)
		return cmp.Or(err, missing)
	}
	switch args {
	case 0:
		debug.PrintReport(out, report)
	case 1:
		debug.PrintController(out, report)
	default:
		debug.PrintExplanation(out, explanation)
	}
	return missing
}

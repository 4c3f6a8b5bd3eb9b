// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"
)

// defaultStatusTimeout is how long a replica is waited for.
const defaultStatusTimeout = 30 * time.Second

// statusOptions say which replica to ask, and how.
type statusOptions struct {
	kubeconfig, server, namespace, pod string
	certificateAuthority               string
	insecure                           bool
	output                             string
	timeout                            time.Duration
}

// validate returns the first mistake.
func (o *statusOptions) validate() error {
	switch {
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("--output: %q is not known, must be text or json", o.output)
	case o.server != "" && o.pod != "":
		return errors.New("--pod and --server exclude each other: each names the replica to ask")
	case o.server != "" && !strings.HasPrefix(o.server, "https://"):
		return fmt.Errorf("--server: %q must begin with https://", o.server)
	case o.insecure && o.certificateAuthority != "":
		return errors.New("--certificate-authority and --insecure-skip-tls-verify exclude each other")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout: %v must be more than 0", o.timeout)
	}
	return nil
}

// newStatusCommand returns the subcommand that prints what the controllers of a replica
// are doing.
func newStatusCommand(registry *controller.Registry) *cobra.Command {
	o := statusOptions{namespace: name, output: "text", timeout: defaultStatusTimeout}
	command := &cobra.Command{
		Use: "status [controller [namespace/object]]",
		Long: `Print what the controllers are doing: all of them, one with its last syncs, or what
one does about an object and why.

It asks the leader's Pod, by a port-forward, if there is one in --namespace, otherwise
the secure port of this machine. --pod asks another replica, --server another address.
Who asks is authenticated by the kubeconfig, and needs the ClusterRole
sample-controller-manager-status-reader. A token gets to be seen by who is asked.`,
		Example: `  sample-controller-manager status
  sample-controller-manager status foo
  sample-controller-manager status foo default/example-foo
  sample-controller-manager status --server=https://127.0.0.1:10261 --insecure-skip-tls-verify`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := statusPath(registry, args)
			if err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("no answer within %v", o.timeout))
			defer cancel()
			return o.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), path)
		},
	}
	var flags cliflag.NamedFlagSets
	fs := flags.FlagSet("status")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file with the credentials to ask by. Empty: that of kubectl.")
	fs.StringVar(&o.server, "server", "", "The address of the replica to ask, such as https://127.0.0.1:10261.")
	fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "The namespace of the replicas and of their Lease.")
	fs.StringVar(&o.pod, "pod", "", "The Pod to ask rather than the leader's.")
	fs.StringVar(&o.certificateAuthority, "certificate-authority", "", "Path to the certificate of the authority that signed the certificate of --server.")
	fs.BoolVar(&o.insecure, "insecure-skip-tls-verify", false, "Do not verify the certificate of --server. Whoever answers there gets to see the credentials.")
	fs.StringVarP(&o.output, "output", "o", o.output, "text or json.")
	fs.DurationVar(&o.timeout, "timeout", o.timeout, "How long to wait for the answer.")
	command.Flags().AddFlagSet(fs)
	cliflag.SetUsageAndHelpFunc(command, flags, 0)
	return command
}

// statusPath returns the path of the page that the arguments ask for.
func statusPath(registry *controller.Registry, args []string) (string, error) {
	if len(args) == 0 {
		return debug.Path, nil
	}
	controller, err := registry.Resolve(args[0])
	if err != nil {
		return "", err
	}
	path := debug.Path + "/" + controller
	if len(args) == 1 {
		return path, nil
	}
	namespace, name, ok := strings.Cut(args[1], "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is no object: write <namespace>/<name>, for example default/%s", args[1], args[1])
	}
	return path + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name), nil
}

// run asks the replica for a page and prints the answer to out. To progress goes which
// replica that is, unless the user has named it.
func (o *statusOptions) run(ctx context.Context, out, progress io.Writer, path string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if o.server != "" {
		return o.ask(ctx, config, out, o.server, path, o.insecure)
	}
	pod, err := o.podToAsk(ctx, config)
	if err != nil {
		return because(ctx, err)
	}
	if pod == "" {
		server := fmt.Sprintf("https://127.0.0.1:%d", port)
		fmt.Fprintf(progress, "No Pod of namespace %s leads, asking %s\n", o.namespace, server)
		return o.ask(ctx, config, out, server, path, o.insecure)
	}
	fmt.Fprintf(progress, "Asking Pod %s/%s\n", o.namespace, pod)
	klog.EnableContextualLogging(true) // as for the daemon: what fails is told once, with the error
	forwarding, err := forward(ctx, config, o.namespace, pod)
	if err != nil {
		return fmt.Errorf("forwarding a port to Pod %s/%s: %w", o.namespace, pod, because(ctx, err))
	}
	defer forwarding.stop()
	// The API server and the Pod's node vouch for the other end; who runs the Pod sees
	// what it is sent in any case.
	if err := o.ask(ctx, config, out, "https://"+forwarding.address, path, true); err != nil {
		return forwarding.failure.because(err)
	}
	return nil
}

// ask asks a replica for a page and prints the answer to out.
func (o *statusOptions) ask(ctx context.Context, config *restclient.Config, out io.Writer, server, path string, insecure bool) error {
	content, err := o.get(ctx, config, strings.TrimSuffix(server, "/"), path, insecure)
	if err != nil {
		return because(ctx, err)
	}
	return o.print(out, path, content)
}

// get asks a replica for a page.
func (o *statusOptions) get(ctx context.Context, config *restclient.Config, server, path string, insecure bool) ([]byte, error) {
	config = restclient.CopyConfig(config)
	// All else that the kubeconfig says of the way there is of that to the API server.
	config.Host, config.APIPath, config.Proxy = server, "", nil
	config.Insecure, config.CAData, config.CAFile, config.ServerName = insecure, nil, "", ""
	if !insecure {
		config.CAFile = o.certificateAuthority
	}
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", server, err)
	}
	defer client.CloseIdleConnections()
	// The credentials are for this server, and no other that it may name.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, explain(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", server, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return content, nil
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%s answers %s: it does not accept the credentials of the kubeconfig", server, response.Status)
	case http.StatusForbidden:
		return nil, fmt.Errorf("%s answers %s: who asks must be bound to the ClusterRole sample-controller-manager-status-reader", server, response.Status)
	default:
		return nil, fmt.Errorf("%s answers %s: %.500s", server, response.Status, strings.Join(strings.Fields(string(content)), " "))
	}
}

// explain says what to write where the certificate of the server is not trusted.
func explain(err error) error {
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return fmt.Errorf("%w; write --certificate-authority=<file>, or --insecure-skip-tls-verify if you know who answers there", err)
	}
	return err
}

// because says that the time is over, if that is why there is an error.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// print prints the answer for a page: for people, or for programs as it came.
func (o *statusOptions) print(out io.Writer, path string, content []byte) error {
	var report debug.Report
	var explanation debug.Explanation
	explained := strings.Count(path, "/") > strings.Count(debug.Path, "/")+1
	var err error
	if explained {
		err = json.Unmarshal(content, &explanation)
	} else {
		err = json.Unmarshal(content, &report)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the answer is not that of a %s: %w", name, err)
	case o.output == "json":
		_, err = out.Write(content)
	case explained:
		debug.PrintExplanation(out, explanation)
	case path == debug.Path:
		debug.PrintReport(out, report)
	default:
		debug.PrintController(out, report)
	}
	return err
}

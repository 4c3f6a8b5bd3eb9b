// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
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

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
)

// statusTimeout is how long a replica is waited for.
const statusTimeout = 30 * time.Second

// statusOptions say which replica to ask, and how.
type statusOptions struct {
	kubeconfig, server, namespace, pod string
	certificateAuthority               string
	insecure                           bool
	output                             string
}

// newStatusCommand returns the subcommand that prints what the controllers of a replica
// are doing.
func newStatusCommand(registry *controller.Registry[*ControllerContext]) *cobra.Command {
	o := statusOptions{namespace: options.ComponentName, output: "text"}
	command := &cobra.Command{
		Use: "status [controller [namespace/object]]",
		Long: `Print what the controllers are doing: all of them, one with its last syncs, or what
one does about an object and why.

It asks the leader's Pod, by a port-forward, if there is one in --namespace, otherwise
the secure port of this machine. --pod asks another replica, --server another address.
Who asks is authenticated by the kubeconfig, and needs the ClusterRole
sample-controller-manager-status-reader.`,
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
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
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
	command.Flags().AddFlagSet(fs)
	cliflag.SetUsageAndHelpFunc(command, flags, 0)
	return command
}

// statusPath returns the path of the page that the arguments ask for.
func statusPath(registry *controller.Registry[*ControllerContext], args []string) (string, error) {
	if len(args) == 0 {
		return debug.Path, nil
	}
	names, err := registry.Enabled(args[:1]) // by an alias, too
	if err != nil {
		return "", err
	}
	path := debug.Path + "/" + names[0]
	if len(args) == 1 {
		return path, nil
	}
	namespace, name, ok := strings.Cut(args[1], "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is no object: write <namespace>/<name>, for example default/%s", args[1], args[1])
	}
	return path + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name), nil
}

func (o *statusOptions) run(ctx context.Context, out, progress io.Writer, path string) error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output: %q is not known, must be text or json", o.output)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	server, insecure := o.server, o.insecure
	if server == "" {
		pod, err := o.podToAsk(ctx, config)
		if err != nil {
			return err
		}
		if pod == "" {
			server = fmt.Sprintf("https://127.0.0.1:%d", options.DefaultPort)
			fmt.Fprintf(progress, "No Pod of namespace %q leads, asking %s\n", o.namespace, server)
		} else {
			fmt.Fprintf(progress, "Asking Pod %s/%s\n", o.namespace, pod)
			address, stop, err := forward(ctx, config, o.namespace, pod)
			if err != nil {
				return fmt.Errorf("forwarding a port to Pod %s/%s: %w", o.namespace, pod, err)
			}
			defer stop()
			// The API server vouches for the other end.
			server, insecure = "https://"+address, true
		}
	}
	content, err := o.get(ctx, config, server, path, insecure)
	if err != nil {
		return err
	}
	if o.output == "json" {
		_, err = out.Write(content)
		return err
	}
	return print(out, path, content)
}

// get asks a replica for a page.
func (o *statusOptions) get(ctx context.Context, config *restclient.Config, server, path string, insecure bool) ([]byte, error) {
	if !strings.HasPrefix(server, "https://") {
		return nil, fmt.Errorf("--server: %q must begin with https://", server)
	}
	config = restclient.CopyConfig(config)
	config.Host, config.APIPath = server, ""
	config.CAData, config.CAFile, config.ServerName = nil, o.certificateAuthority, ""
	config.Insecure = insecure
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", server, err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return nil, err
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
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%s answers %s: who asks must be bound to the ClusterRole sample-controller-manager-status-reader", server, response.Status)
	default:
		return nil, fmt.Errorf("%s answers %s: %s", server, response.Status, strings.TrimSpace(string(content)))
	}
}

// explain says what to write where the certificate of the server is not trusted.
func explain(err error) error {
	if strings.Contains(err.Error(), "x509: ") {
		return fmt.Errorf("%w; write --certificate-authority=<file>, or --insecure-skip-tls-verify if you know who answers there", err)
	}
	return err
}

// print prints the answer for a page for people.
func print(out io.Writer, path string, content []byte) error {
	unreadable := func(err error) error {
		return errors.Join(errors.New("the answer is not that of a "+options.ComponentName), err)
	}
	if strings.Count(path, "/") > strings.Count(debug.Path, "/")+1 {
		var e debug.Explanation
		if err := json.Unmarshal(content, &e); err != nil {
			return unreadable(err)
		}
		debug.PrintExplanation(out, e)
		return nil
	}
	var r debug.Report
	if err := json.Unmarshal(content, &r); err != nil {
		return unreadable(err)
	}
	if path == debug.Path {
		debug.PrintReport(out, r)
	} else {
		debug.PrintController(out, r)
	}
	return nil
}

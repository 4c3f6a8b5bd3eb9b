// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads what kubectl scm shows: the Lease, the replicas and their status pages, and the
// objects that the daemon keeps. It reads with the operator's own credentials, except that a replica gets
// a token that may only read its status.
package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// Daemon is the name of the program, of its Lease, ServiceAccount and Deployment, and by default of
	// its namespace.
	Daemon = "sample-controller-manager"
	// reader is the name of a ServiceAccount that can read the status of replicas, and of the Role that
	// lets operators request its token.
	reader = Daemon + "-status-reader"
	// levelSetter is the same for setting the log verbosity.
	levelSetter = Daemon + "-log-level"
	// deletionAllower is the same for lifting the limit of deletions.
	deletionAllower = Daemon + "-allow-deletions"
	// port is where a replica serves HTTPS.
	port = 10261
)

// Options say where the cluster is, and which replica to ask.
type Options struct {
	// DaemonNamespace is the namespace of the daemon.
	DaemonNamespace string
	// Server is the address of the replica to ask, or Pod its Pod. If both are empty, the leader's Pod is
	// asked.
	Server, Pod string

	// account is the name of the ServiceAccount whose token a replica gets, and of the Role that lets operators request
	// it. accountFlag sets it.
	account, accountFlag, defaultAccount string

	kubeconfig, certificateAuthority string
	insecure                         bool
	overrides                        clientcmd.ConfigOverrides
}

// AddFlags adds the flags for the cluster. They are the same as in kubectl, except that --server is the
// address of a replica.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file.")
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ClusterOverrideFlags = clientcmd.ClusterOverrideFlags{}
	flags.AuthOverrideFlags.Username, flags.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	flags.ContextOverrideFlags.Namespace.Description = "Namespace of objects. The daemon's is --daemon-namespace."
	clientcmd.BindOverrideFlags(&o.overrides, fs, flags)
	fs.StringVar(&o.DaemonNamespace, "daemon-namespace", Daemon, "Namespace of the daemon.")
}

// AddStatusFlags adds the flags for reading the status of a replica.
func (o *Options) AddStatusFlags(fs *pflag.FlagSet) { o.addReplicaFlags(fs, "status-reader", reader) }

// AddLevelFlags adds the flags for setting the log verbosity of a replica.
func (o *Options) AddLevelFlags(fs *pflag.FlagSet) {
	o.addReplicaFlags(fs, "log-level-setter", levelSetter)
}

// AddDeletionFlags adds the flags for lifting the limit of deletions.
func (o *Options) AddDeletionFlags(fs *pflag.FlagSet) {
	o.addReplicaFlags(fs, "deletion-allower", deletionAllower)
}

// addReplicaFlags adds the flags that select a replica, and the account whose token it gets.
func (o *Options) addReplicaFlags(fs *pflag.FlagSet, flag, account string) {
	o.accountFlag, o.defaultAccount = flag, account
	fs.StringVar(&o.Server, "server", "", "Address of the replica to ask, such as https://127.0.0.1:10261.")
	fs.StringVar(&o.Pod, "pod", "", "Pod to ask instead of the leader's.")
	fs.StringVar(&o.account, flag, account, "ServiceAccount whose token the replica gets. A kustomize namePrefix changes its name.")
	fs.StringVar(&o.certificateAuthority, "certificate-authority", "", "Path to a CA certificate for --server.")
	fs.BoolVar(&o.insecure, "insecure-skip-tls-verify", false, "Do not verify the certificate of --server. Any server at that address then sees the token.")
}

// readerRole returns the name of the Role for all but the token of another account. It has the same prefix.
func (o *Options) readerRole() string {
	prefix, ok := strings.CutSuffix(o.account, o.defaultAccount)
	if !ok {
		return reader
	}
	return prefix + reader
}

// Validate returns the first invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Server != "" && o.Pod != "":
		return errors.New("--pod and --server are mutually exclusive: each selects the replica to ask")
	case o.Server != "" && !strings.HasPrefix(o.Server, "https://"):
		return fmt.Errorf("invalid --server %q: must begin with https://", o.Server)
	case o.Server == "" && (o.insecure || o.certificateAuthority != ""):
		return errors.New("--certificate-authority and --insecure-skip-tls-verify require --server")
	case o.insecure && o.certificateAuthority != "":
		return errors.New("--certificate-authority and --insecure-skip-tls-verify are mutually exclusive")
	}
	return nil
}

// GivenNamespace returns the value of --namespace, empty if it was not given.
func (o *Options) GivenNamespace() string { return o.overrides.Context.Namespace }

// Connect returns a client of the cluster. It sends no request.
func (o *Options) Connect() (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig: %w", err)
	}
	// One request may wait for no other: the dashboard reads several things at once.
	config.QPS, config.Burst = -1, 0
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &Cluster{options: *o, config: config, client: client, objects: objects, Namespace: namespace}, nil
}

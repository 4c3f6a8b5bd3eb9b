// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseoptions "k8s.io/component-base/config/options"

	"samplecontroller.io/controller-manager/internal/connection"
)

// leastWriteTimeout is the shortest timeout that a write in a busy cluster can meet.
const leastWriteTimeout = 100 * time.Millisecond

// Options configure whether and how to campaign. The flags are those of
// kube-controller-manager.
type Options struct {
	componentbaseconfig.LeaderElectionConfiguration
	// WriteTimeout bounds each write that passes the gate.
	WriteTimeout time.Duration
}

// NewOptions returns kube-controller-manager's settings for a Lease of the given name. The
// namespace is the one that the process runs in, or kube-system outside a cluster.
func NewOptions(name string) *Options {
	return &Options{
		LeaderElectionConfiguration: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect:       true,
			LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      name,
			ResourceNamespace: podNamespace(),
		},
		WriteTimeout: 3 * time.Second,
	}
}

// podNamespace returns the namespace that the process runs in.
func podNamespace() string {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return metav1.NamespaceSystem
	}
	return strings.TrimSpace(string(namespace))
}

// AddFlags adds the --leader-elect flags and --write-timeout.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	componentbaseoptions.BindLeaderElectionFlags(&o.LeaderElectionConfiguration, fs)
	fs.Lookup("leader-elect-resource-namespace").Usage = "The namespace of resource object that is used for locking during leader election. " +
		"Defaults to the namespace that the process runs in, or kube-system outside a cluster."
	fs.Lookup("leader-elect-lease-duration").Usage += fmt.Sprintf(" It must be whole seconds, at most %v.", longestLease)
	fs.DurationVar(&o.WriteTimeout, "write-timeout", o.WriteTimeout,
		"How long a single write of a controller may take before it is given up and retried. "+
			"The second try may take longer, one at a time in each controller: until just before another process may take the Lease, "+
			"or 30s without leader election. "+
			"A leader whose Lease is not renewed stops writing this long, plus a safety margin, before another process may take the Lease.")
}

// Validate returns all errors. They name the flags.
func (o *Options) Validate() []error {
	const write = "--write-timeout"
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.WriteTimeout >= leastWriteTimeout, "%s: %v is too short, must be at least %v", write, o.WriteTimeout, leastWriteTimeout)
	if !o.LeaderElect {
		return errs
	}
	d := o.durations()
	d.write = max(d.write, 0) // a negative one was reported above
	errs = append(errs, d.validate(durationNames{
		lease: "--leader-elect-lease-duration", renew: "--leader-elect-renew-deadline", retry: "--leader-elect-retry-period", write: write,
	})...)
	check(o.ResourceLock == resourcelock.LeasesResourceLock,
		"--leader-elect-resource-lock: %q is not supported, must be leases", o.ResourceLock)
	check(o.ResourceName != "", "--leader-elect-resource-name: must not be empty")
	check(o.ResourceNamespace != "", "--leader-elect-resource-namespace: must not be empty")
	if problems := content.IsDNS1123Subdomain(o.ResourceName); o.ResourceName != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-name: %q is not a valid name: %s", o.ResourceName, problems[0]))
	}
	if problems := content.IsDNS1123Label(o.ResourceNamespace); o.ResourceNamespace != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-namespace: %q is not a valid name: %s", o.ResourceNamespace, problems[0]))
	}
	return errs
}

func (o *Options) durations() durations {
	return durations{lease: o.LeaseDuration.Duration, renew: o.RenewDeadline.Duration, retry: o.RetryPeriod.Duration,
		write: o.WriteTimeout}
}

// Timing describes the effect of the durations in one line.
func (o *Options) Timing() string {
	d := o.durations()
	outage := min(d.validity(), d.retry+d.renew) - 2*d.retry
	return fmt.Sprintf("a leader writes for %v after a renewal and keeps the Lease in an outage of up to %v; after a crash nobody leads for at most %v",
		d.validity(), outage, d.lease)
}

// Gate returns the gate that must wrap the clients of the work.
func (o *Options) Gate() *Gate { return NewGate(o.WriteTimeout) }

// Election returns the election of this process, which opens and closes gate. It returns
// nil if the process leads without an election. It creates its own client from config, so
// that requests of the work never delay a renewal: the client shares neither rate limiter
// nor connection with the work. config must not be wrapped by the gate. After two requests in
// a row that time out, the election opens a new connection, and calls reconnect, which should
// do the same for the work. recorder, metrics and reconnect may be nil.
func (o *Options) Election(config *restclient.Config, gate *Gate, recorder resourcelock.EventRecorder, metrics *Metrics,
	reconnect func()) (*Election, error) {
	if !o.LeaderElect {
		return nil, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading hostname: %w", err)
	}
	config = restclient.CopyConfig(config)
	config.QPS = -1
	config.Timeout = 0 // the election bounds all requests but the watch
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: o.RenewDeadline.Duration / 2, KeepAlive: 30 * time.Second}).DialContext
	}
	userAgent := config.UserAgent
	config, renew, err := connection.Renewable(config)
	if err != nil {
		return nil, fmt.Errorf("creating the leader election client: %w", err)
	}
	config.UserAgent = userAgent
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the leader election client: %w", err)
	}
	return New(Config{
		Namespace: o.ResourceNamespace,
		Name:      o.ResourceName,
		// Two processes on one host need different identities.
		Identity:      hostname + "_" + uuid.NewString(),
		LeaseDuration: o.LeaseDuration.Duration,
		RenewDeadline: o.RenewDeadline.Duration,
		RetryPeriod:   o.RetryPeriod.Duration,
		Gate:          gate,
		Client:        client,
		Reconnect: func() {
			renew()
			if reconnect != nil {
				reconnect()
			}
		},
		Recorder: recorder,
		Metrics:  metrics,
	})
}

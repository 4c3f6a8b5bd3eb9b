// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseoptions "k8s.io/component-base/config/options"
)

// Options say whether and how to campaign, with the flags that
// kube-controller-manager has for it.
type Options struct {
	componentbaseconfig.LeaderElectionConfiguration
}

// NewOptions returns kube-controller-manager's settings for a Lease of the given
// name, in the namespace that the process runs in, outside a cluster kube-system.
func NewOptions(name string) *Options {
	return &Options{componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:       true,
		LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
		RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
		RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		ResourceLock:      resourcelock.LeasesResourceLock,
		ResourceName:      name,
		ResourceNamespace: podNamespace(),
	}}
}

// podNamespace returns the namespace that the process runs in.
func podNamespace() string {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return metav1.NamespaceSystem
	}
	return strings.TrimSpace(string(namespace))
}

// AddFlags adds the --leader-elect flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	componentbaseoptions.BindLeaderElectionFlags(&o.LeaderElectionConfiguration, fs)
}

// Validate returns all that is wrong, by the names of the flags.
func (o *Options) Validate() []error {
	if !o.LeaderElect {
		return nil
	}
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	lease, renew, retry := o.LeaseDuration.Duration, o.RenewDeadline.Duration, o.RetryPeriod.Duration
	leastRenew := time.Duration(leaderelection.JitterFactor * float64(retry))
	check(lease >= time.Second && lease%time.Second == 0,
		"--leader-elect-lease-duration: %v must be whole seconds, at least 1s: the Lease keeps no fractions", lease)
	check(renew < lease,
		"--leader-elect-renew-deadline: %v must be shorter than --leader-elect-lease-duration (%v)", renew, lease)
	check(renew > leastRenew,
		"--leader-elect-renew-deadline: %v must be longer than %v, which is %v times --leader-elect-retry-period (%v)",
		renew, leastRenew, leaderelection.JitterFactor, retry)
	check(retry >= time.Millisecond, "--leader-elect-retry-period: %v is too short, must be at least 1ms", retry)
	check(o.ResourceLock == resourcelock.LeasesResourceLock,
		"--leader-elect-resource-lock: %q is not supported, must be leases", o.ResourceLock)
	check(o.ResourceName != "", "--leader-elect-resource-name: must not be empty")
	check(o.ResourceNamespace != "", "--leader-elect-resource-namespace: must not be empty")
	return errs
}

// Election returns the election of this process, nil if it is to lead without
// one. It makes a client of its own from config, so that no request of the work
// delays a renewal. recorder may be nil.
func (o *Options) Election(config *restclient.Config, recorder resourcelock.EventRecorder) (*Election, error) {
	if !o.LeaderElect {
		return nil, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading hostname: %w", err)
	}
	config = restclient.CopyConfig(config)
	config.QPS = -1
	// One hung request must not use up the time that there is to renew.
	config.Timeout = o.RenewDeadline.Duration / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client of leader election: %w", err)
	}
	return New(Config{
		Namespace: o.ResourceNamespace,
		Name:      o.ResourceName,
		// Two processes on one host must not take each other for themselves.
		Identity:      hostname + "_" + uuid.NewString(),
		LeaseDuration: o.LeaseDuration.Duration,
		RenewDeadline: o.RenewDeadline.Duration,
		RetryPeriod:   o.RetryPeriod.Duration,
		Client:        client,
		Recorder:      recorder,
	})
}

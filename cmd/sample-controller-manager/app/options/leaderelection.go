// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	componentbaseconfig "k8s.io/component-base/config"
	componentbaseoptions "k8s.io/component-base/config/options"
)

// LeaderElectionOptions say whether and how to campaign for leadership.
type LeaderElectionOptions struct {
	componentbaseconfig.LeaderElectionConfiguration
}

func newLeaderElectionOptions() *LeaderElectionOptions {
	return &LeaderElectionOptions{componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:       true,
		LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
		RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
		RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		ResourceLock:      "leases",
		ResourceName:      ComponentName,
		ResourceNamespace: podNamespace(),
	}}
}

// podNamespace returns the namespace that the process runs in, kube-system
// outside a cluster.
func podNamespace() string {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return metav1.NamespaceSystem
	}
	return strings.TrimSpace(string(namespace))
}

func (o *LeaderElectionOptions) addFlags(fs *pflag.FlagSet) {
	componentbaseoptions.BindLeaderElectionFlags(&o.LeaderElectionConfiguration, fs)
}

func (o *LeaderElectionOptions) validate() []error {
	if !o.LeaderElect {
		return nil
	}
	var errs []error
	lease, renew, retry := o.LeaseDuration.Duration, o.RenewDeadline.Duration, o.RetryPeriod.Duration
	if lease < time.Second || lease%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration: %v must be whole seconds, at least 1s: the Lease keeps no fractions", lease))
	}
	if lease <= renew {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline: %v must be shorter than --leader-elect-lease-duration (%v)", renew, lease))
	}
	if least := time.Duration(leaderelection.JitterFactor * float64(retry)); renew <= least {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline: %v must be longer than %v, which is %v times --leader-elect-retry-period (%v)",
			renew, least, leaderelection.JitterFactor, retry))
	}
	errs = append(errs, atLeast("leader-elect-retry-period", retry, time.Millisecond)...)
	if o.ResourceLock != "leases" {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock: %q is not supported, must be leases", o.ResourceLock))
	}
	if o.ResourceName == "" {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-name: must not be empty"))
	}
	if o.ResourceNamespace == "" {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-namespace: must not be empty"))
	}
	return errs
}

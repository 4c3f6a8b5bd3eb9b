// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"errors"
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Config configures for which Lease to campaign, under which identity, and how.
type Config struct {
	// Namespace and Name of the Lease.
	Namespace, Name string
	// Identity of this process. It must be unique.
	Identity string
	// LeaseDuration is how long others wait after the last renewal that they saw before
	// they take the Lease. It must be whole seconds, because the record stores seconds,
	// and at most 5 minutes.
	LeaseDuration time.Duration
	// RenewDeadline is how long the elector tries to renew before the Lease counts as
	// lost. Each request may take half of it.
	RenewDeadline time.Duration
	// RetryPeriod is how long to wait between two attempts to acquire or renew.
	RetryPeriod time.Duration
	// Gate is opened and closed by the election. If it is nil, nothing stops the writes
	// of work that ignores the end of its term.
	Gate *Gate
	// Client reads, watches and writes the Lease. It must not pass the gate, and should
	// share neither rate limiter nor connection with the work. It must have no timeout,
	// which would also end the watch.
	Client coordinationv1client.LeasesGetter
	// Reconnect is called after two requests for the Lease in a row have timed out. It should
	// make Client open a new connection: an API server that has lost its etcd keeps its
	// connections, while another one behind the same address may work. It may be nil.
	Reconnect func()
	// Recorder records as Events of the Lease who became leader. It may be nil.
	Recorder resourcelock.EventRecorder
	// Metrics count the terms. It may be nil.
	Metrics *Metrics
}

// validity returns how long a term is valid after a renewal was sent.
func (c *Config) validity() time.Duration { return c.durations().validity() }

// requestTimeout bounds each request, so that one that hangs leaves time to renew.
func (c *Config) requestTimeout() time.Duration { return c.RenewDeadline / 2 }

func (c *Config) durations() durations {
	d := durations{lease: c.LeaseDuration, renew: c.RenewDeadline, retry: c.RetryPeriod}
	if c.Gate != nil {
		d.write = c.Gate.timeout
	}
	return d
}

// validate returns all errors.
func (c *Config) validate() error {
	if c.Namespace == "" || c.Name == "" {
		return fmt.Errorf("lease is %q in namespace %q, must have a name and a namespace", c.Name, c.Namespace)
	}
	if c.Client == nil {
		return errors.New("client for the lease is missing")
	}
	return utilerrors.NewAggregate(c.durations().validate(durationNames{
		lease: "lease duration", renew: "renew deadline", retry: "retry period", write: "write timeout",
	}))
}

// durations are those that together determine whether a term is safe.
type durations struct {
	lease, renew, retry, write time.Duration
}

// durationNames are the names of the durations in errors.
type durationNames struct {
	lease, renew, retry, write string
}

// longestLease bounds the duration of a Lease, because after a crash nobody leads for that
// long. It exceeds the 270 s of single-node OpenShift, the longest known in use.
const longestLease = 5 * time.Minute

// margin covers the time until a write that was given up is really gone, and clocks that
// run at different rates.
func (d durations) margin() time.Duration { return min(time.Second, d.lease/10) }

// validity returns how long after a renewal was sent a leader may send writes. Each write
// must be answered or given up before another process takes the Lease.
func (d durations) validity() time.Duration { return d.lease - d.write - d.margin() }

// validate returns all errors, with the calculation.
func (d durations) validate(name durationNames) []error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(d.lease >= time.Second && d.lease%time.Second == 0,
		"%s: %v must be whole seconds, at least 1s: a Lease stores no fractions", name.lease, d.lease)
	check(d.lease <= longestLease, "%s: %v must be at most %v: after a crash nobody leads for that long", name.lease, d.lease, longestLease)
	check(d.retry >= time.Millisecond, "%s: %v is too short, must be at least 1ms", name.retry, d.retry)
	check(d.retry <= longestLease, "%s: %v is too long, must be shorter than %s (%v)", name.retry, d.retry, name.renew, d.renew)
	check(d.write >= 0, "%s: %v must not be negative", name.write, d.write)
	if len(errs) == 0 {
		check(d.validity() > 2*d.retry,
			"%s: %v is too long for %s %v: after a renewal a leader writes for %v - %v - margin %v = %v, must be longer than %v, twice %s (%v)",
			name.write, d.write, name.lease, d.lease, d.lease, d.write, d.margin(), d.validity(), 2*d.retry, name.retry, d.retry)
	}
	check(d.renew < d.lease, "%s: %v must be shorter than %s (%v)", name.renew, d.renew, name.lease, d.lease)
	leastRenew := time.Duration(leaderelection.JitterFactor * float64(min(d.retry, longestLease))) // avoids an overflow
	check(d.renew > leastRenew, "%s: %v must be longer than %v, which is %v times %s (%v)",
		name.renew, d.renew, leastRenew, leaderelection.JitterFactor, name.retry, d.retry)
	return errs
}

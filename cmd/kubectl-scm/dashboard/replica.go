// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

const (
	// entries is how many keys a report has in each list.
	entries = 50
	// renewal is when a connection is replaced: its token expires after 10 minutes.
	renewal = 8 * time.Minute
	// dialing is the longest wait between two tries to connect.
	dialing = 10 * time.Second
)

// follow reads the report of the leader. It connects again when that fails, when the leader changes and before the
// token expires.
func (d *Dashboard) follow(ctx context.Context) {
	defer d.replica.set(nil)
	delay, dialed, holder := reportInterval, time.Time{}, ""
	for {
		d.mutex.Lock()
		leader := d.lead.Value.Holder
		d.mutex.Unlock()
		if holder == "" {
			holder = leader // the first connection did not wait until it was known
		}
		var err error
		if !d.replica.connected() || leader != holder || time.Since(dialed) > renewal {
			if err = d.dial(ctx); err == nil {
				dialed, holder = time.Now(), leader
			}
		}
		var report debug.Report
		if err == nil {
			report, err = ask(ctx, d, d.options.Timeout, func(ctx context.Context, r Replica) (debug.Report, error) {
				return r.Report(ctx, "", entries)
			})
		}
		if ctx.Err() != nil {
			return
		}
		d.took(report, err)
		if err != nil {
			d.replica.set(nil)
			delay = min(delay*2, dialing)
		} else {
			delay = reportInterval
		}
		if !wait(ctx, delay) {
			return
		}
	}
}

// took keeps a report, or the reason why there is none.
func (d *Dashboard) took(report debug.Report, err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err != nil {
		d.report.Err = err
		d.history.add(time.Now(), nil)
		return
	}
	d.report.succeeded(report, time.Now())
	d.history.add(time.Now(), &report)
}

// dial connects to the replica.
func (d *Dashboard) dial(ctx context.Context) error {
	// The connection ends with this context, so the timeout must not apply any longer than until it is there.
	dialing, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(d.options.Timeout, func() { cancel(fmt.Errorf("no connection within %v", d.options.Timeout)) })
	replica, err := d.source.Dial(dialing)
	if !timer.Stop() && err == nil {
		replica.Close()
		err = context.Cause(dialing)
	}
	if err != nil {
		defer cancel(nil)
		if cause := context.Cause(dialing); cause != nil {
			return fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	d.replica.set(closing{replica, func() { cancel(nil) }})
	return nil
}

// closing is a replica whose context ends when it is closed.
type closing struct {
	Replica
	cancel func()
}

func (c closing) Close() {
	c.Replica.Close()
	c.cancel()
}

// connection is the connection to the replica that answers. It is safe for concurrent use.
type connection struct {
	mutex   sync.RWMutex
	replica Replica // nil if there is none
}

var errNotConnected = errors.New("there is no connection to the daemon")

func (c *connection) connected() bool {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	return c.replica != nil
}

// use calls f with the replica, which stays open until it returns.
func (c *connection) use(f func(Replica) error) error {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	if c.replica == nil {
		return errNotConnected
	}
	return f(c.replica)
}

// ask asks the replica, with a timeout.
func ask[T any](ctx context.Context, d *Dashboard, timeout time.Duration,
	read func(context.Context, Replica) (T, error)) (T, error) {
	return bounded(ctx, timeout, func(ctx context.Context) (value T, err error) {
		err = d.replica.use(func(r Replica) error {
			value, err = read(ctx, r)
			return err
		})
		return value, err
	})
}

// set replaces the connection, and closes the old one.
func (c *connection) set(replica Replica) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.replica != nil {
		c.replica.Close()
	}
	c.replica = replica
}

// patience is how long a page waits for what only it reads.
func (d *Dashboard) patience() time.Duration { return min(d.options.Timeout, 3*time.Second) }

// explain returns what the daemon does about an object.
func (d *Dashboard) explain(ctx context.Context, kind cluster.Kind, namespace, name string) (debug.Explanation, error) {
	return ask(ctx, d, d.patience(), func(ctx context.Context, r Replica) (debug.Explanation, error) {
		return r.Explain(ctx, kind.Controller, namespace, name)
	})
}

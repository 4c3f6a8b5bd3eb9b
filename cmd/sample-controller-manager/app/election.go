// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"

	"github.com/google/uuid"

	"samplecontroller.io/controller-manager/leadership"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
)

// newElection returns the process's campaign for leadership, nil if it leads
// without one.
func newElection(c *ControllerContext) (*leadership.Election, error) {
	lease := c.config.LeaderElection
	if !lease.LeaderElect {
		return nil, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading hostname: %w", err)
	}
	// A client of its own, so that no write of a controller delays a renewal; and
	// one hung request must not use up the time that there is to renew.
	client, err := c.kube("leader-election", lease.RenewDeadline.Duration/2)
	if err != nil {
		return nil, err
	}
	return leadership.New(leadership.Config{
		Namespace: lease.ResourceNamespace,
		Name:      lease.ResourceName,
		// Two processes on one host must not take each other for themselves.
		Identity:      hostname + "_" + uuid.NewString(),
		LeaseDuration: lease.LeaseDuration.Duration,
		RenewDeadline: lease.RenewDeadline.Duration,
		RetryPeriod:   lease.RetryPeriod.Duration,
		Client:        client.CoordinationV1(),
		Recorder:      c.recorder(options.ComponentName),
	})
}

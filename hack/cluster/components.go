// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// startComponents starts what makes an API server a cluster. It does not wait:
// whether they work shows in the objects that [Cluster.waitReady] looks at.
// None serves a port, so none can clash over one.
func (c *Cluster) startComponents() error {
	rootCA := filepath.Join(c.Dir, "root-ca.crt")
	if err := os.WriteFile(rootCA, c.config.CAData, 0o600); err != nil {
		return fmt.Errorf("writing the root certificate: %w", err)
	}
	for _, component := range []struct {
		name   string
		user   string
		groups []string
		args   []string
	}{
		{
			// Credentials for each controller tell them apart in the audit log
			// and hold them to their RBAC rules, as in a cluster by kubeadm.
			name: "kube-controller-manager",
			user: "system:kube-controller-manager",
			args: []string{
				"--use-service-account-credentials",
				"--service-account-private-key-file=" + c.certFile("sa-signer.key"),
				"--root-ca-file=" + rootCA,
				"--leader-elect=false",
				"--secure-port=0",
				"--kube-api-qps=500",
				"--kube-api-burst=1000",
			},
		},
		{
			name: "kube-scheduler",
			user: "system:kube-scheduler",
			args: []string{
				"--leader-elect=false",
				"--secure-port=0",
				"--kube-api-qps=500",
				"--kube-api-burst=1000",
			},
		},
		{
			name:   "kwok",
			user:   "kwok",
			groups: []string{"system:masters"},
			args: []string{
				"--config=" + filepath.Join(filepath.Dir(c.paths["kwok"]), kwokStages),
				"--manage-all-nodes",
				// Without Leases kube-controller-manager takes Nodes for dead after
				// 50 seconds.
				"--node-lease-duration-seconds=40",
			},
		},
	} {
		kubeconfig, err := c.addUser(component.name, component.user, component.groups...)
		if err != nil {
			return err
		}
		args := append(component.args, "--kubeconfig="+kubeconfig)
		p, err := c.group.Start(component.name, nil, c.paths[component.name], args...)
		if err != nil {
			return err
		}
		c.components = append(c.components, p)
	}
	return nil
}

// componentErr tells of components that have ended by themselves.
func (c *Cluster) componentErr() error {
	var errs []error
	for _, p := range c.components {
		errs = append(errs, p.Err())
	}
	return errors.Join(errs...)
}

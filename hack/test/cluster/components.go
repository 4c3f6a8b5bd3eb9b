// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// controllers are the controllers of kube-controller-manager that matter to our objects or to
// tests. The others would only watch.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"horizontal-pod-autoscaler-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"taint-eviction-controller",
	"validatingadmissionpolicy-status-controller",
}

// startComponents starts the other components of a cluster. It does not wait:
// [Cluster.await] checks their effects. None serves a port, so ports cannot conflict.
func (c *Cluster) startComponents() error {
	rootCA := filepath.Join(c.Dir, "root-ca.crt")
	if err := os.WriteFile(rootCA, c.config.CAData, 0o600); err != nil {
		return fmt.Errorf("writing the root certificate: %w", err)
	}
	stages := filepath.Join(c.Dir, "kwok-stages.yaml")
	content, err := exec.Command(c.paths[kwokStages]).Output()
	if err != nil {
		return fmt.Errorf("printing kwok's stages: %w", err)
	}
	if err := os.WriteFile(stages, content, 0o600); err != nil {
		return fmt.Errorf("writing kwok's stages: %w", err)
	}
	for _, component := range []struct {
		name   string
		user   string
		groups []string
		args   []string
	}{
		{
			// Separate credentials distinguish the controllers in the audit log and subject
			// them to their RBAC rules, as in a cluster made by kubeadm.
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
				"--controllers=" + strings.Join(controllers, ","),
				// By default an autoscaler acts only four times a minute.
				"--horizontal-pod-autoscaler-sync-period=1s",
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
				"--config=" + stages,
				"--manage-all-nodes",
				// Without Leases, kube-controller-manager considers Nodes dead after 50
				// seconds.
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

// componentErr reports components that have ended by themselves.
func (c *Cluster) componentErr() error {
	var errs []error
	for _, p := range c.components {
		errs = append(errs, p.Err())
	}
	return errors.Join(errs...)
}

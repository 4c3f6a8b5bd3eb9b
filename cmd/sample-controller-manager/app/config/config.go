// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config holds what the settings of the daemon come to, ready to run.
package config

import (
	"time"

	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
)

// Config is all that the daemon needs to run.
type Config struct {
	// Kubeconfig is how to reach the API server, before any client has put its
	// name to it. ContentType is what clients of built-in resources speak.
	Kubeconfig  *restclient.Config
	ContentType string

	// Server is what is served to whom, but for the probes' checks.
	Server server.Config

	// Namespace is the one that the controllers serve, empty for all.
	Namespace string

	// Enabled are the names of the enabled controllers, sorted; Workers is how
	// many syncs each runs at once.
	Enabled      []string
	Workers      map[string]int
	FeatureGates featuregate.FeatureGate

	// ControllerFlags has the values of the controllers' own flags by name of the flag, also
	// of disabled controllers.
	ControllerFlags map[string]string

	// LeaderElection says whether and how to campaign, and how long each request of
	// a controller may take.
	LeaderElection            *leadership.Options
	WarmStandby               bool
	MinResyncPeriod           time.Duration
	SyncTimeout               time.Duration
	ControllerStartInterval   time.Duration
	ControllerShutdownTimeout time.Duration
}

type completedConfig struct {
	*Config
}

// CompletedConfig is a Config that [Config.Complete] has been called on; nothing
// outside this package can make another.
type CompletedConfig struct {
	*completedConfig
}

// Complete returns the config as one that is ready to run.
func (c *Config) Complete() *CompletedConfig {
	return &CompletedConfig{&completedConfig{c}}
}

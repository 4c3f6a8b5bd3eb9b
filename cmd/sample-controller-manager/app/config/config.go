// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config holds what the settings of the daemon come to, ready to run.
package config

import (
	"time"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/component-base/featuregate"
)

// Config is all that the daemon needs to run.
type Config struct {
	// Kubeconfig is how to reach the API server, before any client has put its
	// name to it. ContentType is what clients of built-in resources speak.
	Kubeconfig  *restclient.Config
	ContentType string
	// WriteTimeout bounds each write of a controller.
	WriteTimeout time.Duration

	// SecureServing is nil where nothing is served.
	SecureServing  *apiserver.SecureServingInfo
	Authentication apiserver.AuthenticationInfo
	Authorization  apiserver.AuthorizationInfo
	Debugging      componentbaseconfig.DebuggingConfiguration
	Flagz          flagz.Reader

	// Enabled are the names of the enabled controllers, sorted; Workers is how
	// many syncs each runs at once.
	Enabled      []string
	Workers      map[string]int
	FeatureGates featuregate.FeatureGate
	Version      compatibility.EffectiveVersion

	LeaderElection            componentbaseconfig.LeaderElectionConfiguration
	MinResyncPeriod           time.Duration
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

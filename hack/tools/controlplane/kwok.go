//go:build !kubernetes_only

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func init() {
	programs["kwok"] = runKwok
	// kwok reads its rules for Nodes and Pods from a file, which exists only in its source.
	programs["kwok-stages"] = func() int {
		fmt.Print(strings.Join([]string{
			fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
			pod.DefaultPodReady, pod.DefaultPodComplete, pod.DefaultPodDelete,
		}, "---\n"))
		return 0
	}
}

// runKwok is a copy of kwok's main function, which its module does not export.
func runKwok() int {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError) // without Kubernetes' --version
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err == nil {
		command := cmd.NewCommand(ctx)
		command.PersistentFlags().AddFlagSet(flags)
		err = command.ExecuteContext(ctx)
	}
	if err != nil {
		logger.Error("Running kwok", "err", err)
		return 1
	}
	return 0
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves a controller manager's HTTPS endpoints: probes, metrics and debugging
// pages.
//
//	config, err := o.Config(ctx, kubeconfig)
//	if err != nil {
//		return err
//	}
//	config.Readyz = []healthz.HealthChecker{healthz.NamedCheck("caches", ready)}
//	wait, err := server.Start(ctx, config)
//	if err != nil {
//		return err
//	}
//	wait()
//	return nil
//
// It serves these paths:
//
//	/healthz /livez /readyz   open to all, ?verbose lists each check; failure reasons
//	                          only for callers authorized to get, say, /readyz/*
//	/metrics /metrics/slis    all other paths only for callers that the API server
//	/statusz /flagz           authenticates and authorizes, by TokenReview and
//	/debug/pprof              SubjectAccessReview of the path
//	/debug/controllers        what each controller is doing, or why it is idle
//	/debug/flags/v            PUT sets the log verbosity, up to 7
//
// While the API server does not answer, callers get these other paths only as long as its earlier
// answers about them are cached: 10 s by default.
//
// It combines the serving stacks of k8s.io/apiserver and k8s.io/controller-manager, and adds
// limits on the resources that callers may use: see limits.go.
package server

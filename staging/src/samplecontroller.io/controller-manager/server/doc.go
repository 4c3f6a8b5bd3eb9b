// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves a controller manager's HTTPS endpoints: probes, metrics
// and what helps to debug it.
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
//	/healthz /livez /readyz   open to all, ?verbose names each check; why one fails
//	                          only to those authorised to get /readyz/*, and so on
//	/metrics /metrics/slis    everything else only to those whom the API server
//	/configz                  authenticates and authorises, by TokenReview and
//	/statusz /flagz           SubjectAccessReview of the path
//	/debug/pprof
//	/debug/controllers        what each controller is doing, and why not
//	/debug/flags/v            PUT sets the log verbosity, at most to 7
//
// It is the stack of k8s.io/apiserver and k8s.io/controller-manager, put
// together once, with bounds of its own to what callers may cost: see limits.go.
package server

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The ops-manager on controller-runtime does what the library's example ops does: it keeps defaults in
// namespaces, schedules backups, and deletes old Jobs.
package main

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"samplecontroller.io/controller-manager/examples/ops/api"
	"samplecontroller.io/controller-manager/examples/ops/vault"
)

type config struct {
	metrics, probes string
	elect           bool
	electNamespace  string
	pods            int64
	vaultURL        string
	jobTTL          time.Duration
}

func main() {
	var c config
	flag.StringVar(&c.metrics, "metrics-bind-address", ":8443", "Address of the metrics endpoint.")
	flag.StringVar(&c.probes, "health-probe-bind-address", ":8081", "Address of the probes.")
	flag.BoolVar(&c.elect, "leader-elect", true, "Enable leader election.")
	flag.StringVar(&c.electNamespace, "leader-elect-namespace", "", "Namespace of the Lease.")
	flag.Int64Var(&c.pods, "default-pods", 50, "Limit of Pods in a namespace with defaults.")
	flag.StringVar(&c.vaultURL, "vault-url", "http://127.0.0.1:8200", "URL of the API that keeps backups.")
	flag.DurationVar(&c.jobTTL, "job-ttl", 24*time.Hour, "How long a finished Job is kept.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := run(c); err != nil {
		ctrl.Log.Error(err, "Manager ended")
		os.Exit(1)
	}
}

func run(c config) error {
	errs := vault.Validate("vault-url", c.vaultURL)
	if c.jobTTL < time.Second {
		errs = append(errs, errors.New("--job-ttl: must be at least 1s"))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	rest, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: newScheme(),
		Metrics: metricsserver.Options{
			BindAddress: c.metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress:        c.probes,
		LeaderElection:                c.elect,
		LeaderElectionID:              "ops-manager",
		LeaderElectionNamespace:       c.electNamespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    ctrlconfig.Controller{EnableWarmup: new(true), MaxConcurrentReconciles: 2},
		Client: client.Options{
			FieldOwner: "ops-manager",
			Cache:      &client.CacheOptions{EnableReadYourWritesConsistency: new(true)},
		},
	})
	if err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	namespaces := &namespaceReconciler{Client: manager.GetClient(), pods: c.pods}
	if err := namespaces.setup(manager); err != nil {
		return err
	}
	backups := &backupReconciler{
		Client: manager.GetClient(),
		events: manager.GetEventRecorder("backup-controller"),
		vault:  vault.New(c.vaultURL, http.DefaultTransport),
	}
	if err := backups.setup(manager); err != nil {
		return err
	}
	jobs := &jobReconciler{
		Client: manager.GetClient(),
		events: manager.GetEventRecorder("job-collector-controller"),
		ttl:    c.jobTTL,
	}
	if err := jobs.setup(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return scheme
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/component-base/compatibility"
	componentbaseconfig "k8s.io/component-base/config"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // leader election and informer queue metrics
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	"k8s.io/component-base/metrics/prometheus/slis"
	_ "k8s.io/component-base/metrics/prometheus/version"
	genericcontrollermanager "k8s.io/controller-manager/app"
)

// shutdownTimeout is how long requests that are being answered are waited for.
const shutdownTimeout = 2 * time.Second

// verbosityPath is where the log verbosity is set, by PUT.
const verbosityPath = "/debug/flags/v"

// Config says what to serve to whom.
type Config struct {
	// Name of the component, as /statusz and /flagz print it.
	Name string
	// SecureServing is the listener with its certificates; nil: nothing is served.
	SecureServing *apiserver.SecureServingInfo
	// Authentication and Authorization decide about every path that is not always
	// allowed.
	Authentication *apiserver.AuthenticationInfo
	Authorization  *apiserver.AuthorizationInfo
	// Reasons decides who may know why a check fails: callers that it lets get the path of
	// the check, or all below the path of the probe. nil: nobody may.
	Reasons authorizer.Authorizer
	// Debugging switches profiling and the setting of the log verbosity, which goes
	// to 7.
	Debugging componentbaseconfig.DebuggingConfiguration
	// Flags are shown by /flagz; nil: there is no /flagz.
	Flags flagz.Reader
	// Version is shown by /statusz; nil: there is no /statusz.
	Version compatibility.EffectiveVersion
	// Healthz, Livez and Readyz are the checks behind the three probes. An empty
	// list answers that the process can answer. Each check is called at most once a second.
	Healthz, Livez, Readyz []healthz.HealthChecker
	// Pages are further handlers, each of a path and of all below it.
	Pages map[string]http.Handler
	// Notes are lines for people, added to /statusz and, for callers that may know why a
	// check fails, to verbose answers of the probes; nil: there are none.
	Notes func() []string
}

// maxBody is how long a request may be after its head. What is told by one is a number.
const maxBody = 1 << 10

// Handler returns the handler of all endpoints, behind authentication and
// authorisation, and behind limits of what callers may cost.
func Handler(config Config) http.Handler {
	may := mayKnow(config.Reasons)
	failures := map[string]func(*http.Request) []string{}
	var live, ready, healthy []healthz.HealthChecker
	healthy, failures["/healthz"] = withheld(config.Healthz, may)
	live, failures["/livez"] = withheld(config.Livez, may)
	ready, failures["/readyz"] = withheld(config.Readyz, may)
	healthzMux := mux.NewPathRecorderMux("healthz")
	healthz.InstallHandler(healthzMux, healthy...)
	mux := genericcontrollermanager.NewBaseHandler(&config.Debugging, healthzMux)
	if config.Debugging.EnableProfiling {
		mux.Unregister(verbosityPath) // which sets whatever it is told to
		mux.UnlistedHandleFunc(verbosityPath, routes.StringFlagPutHandler(setVerbosity))
	}
	mux.HandlePrefix("/healthz/", healthzMux) // the base handler has no single checks
	healthz.InstallLivezHandler(mux, live...)
	healthz.InstallReadyzHandler(mux, ready...)
	slis.SLIMetricsWithReset{}.Install(mux)
	if config.Flags != nil {
		flagz.Install(mux, config.Name, config.Flags)
	}
	if config.Version != nil {
		statusz.Install(mux, config.Name, statusz.NewRegistry(config.Version, statusz.WithListedPaths(mux.ListedPaths())))
	}
	for path, page := range config.Pages {
		mux.Handle(path, page)
		mux.HandlePrefix(path+"/", page)
	}
	served := http.MaxBytesHandler(withReasons(mux, failures, config.Notes, may), maxBody)
	served = withMaxInFlight(withTimeForProfiles(served))
	return withTimeouts(genericcontrollermanager.BuildHandlerChain(served, config.Authorization, config.Authentication))
}

// Start serves until ctx ends. The returned function waits until nothing is
// served any more; call it after ctx has ended.
func Start(ctx context.Context, config Config) (wait func(), err error) {
	if config.SecureServing == nil {
		return func() {}, nil
	}
	stopped, listenerStopped, err := config.SecureServing.Serve(Handler(config), shutdownTimeout, ctx.Done())
	if err != nil {
		return nil, fmt.Errorf("serving HTTPS: %w", err)
	}
	return func() {
		<-listenerStopped
		<-stopped
	}, nil
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
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

	internallogs "samplecontroller.io/controller-manager/internal/logs"
)

// shutdownTimeout is how long to wait for requests in progress at the end.
const shutdownTimeout = 2 * time.Second

// verbosityPath is where a PUT sets the log verbosity.
const verbosityPath = "/debug/flags/v"

// Config configures the HTTPS endpoints and their access control.
type Config struct {
	// Name is the name of the component in /statusz and /flagz.
	Name string
	// SecureServing is the listener with its certificates. If nil, nothing is served.
	SecureServing *apiserver.SecureServingInfo
	// Authentication and Authorization apply to every path except the open ones.
	Authentication *apiserver.AuthenticationInfo
	Authorization  *apiserver.AuthorizationInfo
	// Reasons authorizes callers to see why a check fails. They need to get the path of the
	// check, or everything below the path of the probe. If nil, no caller is authorized.
	Reasons authorizer.Authorizer
	// Debugging enables profiling and setting the log verbosity, up to 7.
	Debugging componentbaseconfig.DebuggingConfiguration
	// Flags are shown by /flagz. If nil, there is no /flagz.
	Flags flagz.Reader
	// Version is shown by /statusz. If nil, there is no /statusz.
	Version compatibility.EffectiveVersion
	// Healthz, Livez and Readyz are the checks of the three probes. A probe without checks
	// succeeds if the process can answer. Each check is called at most once a second.
	Healthz, Livez, Readyz []healthz.HealthChecker
	// Pages maps paths to additional handlers. A handler also serves everything below its
	// path.
	Pages map[string]http.Handler
	// Notes returns lines that are added to /statusz. They are also added to verbose probes
	// for callers that may see failure reasons. Optional.
	Notes func() []string
}

// maxBody is the maximum size of a request body in bytes. The only body in use is a number.
const maxBody = 1 << 10

// Handler returns the handler of all endpoints, with authentication, authorization and limits
// on callers.
func Handler(config Config) http.Handler {
	may := maySeeReasons(config.Reasons)
	failures := map[string]func(*http.Request) []string{}
	var live, ready, healthy []healthz.HealthChecker
	healthy, failures["/healthz"] = withheld(config.Healthz, may)
	live, failures["/livez"] = withheld(config.Livez, may)
	ready, failures["/readyz"] = withheld(config.Readyz, may)
	healthzMux := mux.NewPathRecorderMux("healthz")
	healthz.InstallHandler(healthzMux, healthy...)
	mux := genericcontrollermanager.NewBaseHandler(&config.Debugging, healthzMux)
	if config.Debugging.EnableProfiling {
		mux.Unregister(verbosityPath) // it would set any value
		mux.UnlistedHandleFunc(verbosityPath, routes.StringFlagPutHandler(internallogs.SetVerbosity))
	}
	mux.Unregister("/configz")                // it would be empty
	mux.HandlePrefix("/healthz/", healthzMux) // the base handler does not serve single checks
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

// Start serves until ctx ends. It logs when the serving certificate has expired, and before that
// in the last tenth of its lifetime, but at most 7 days before. The returned function waits until
// everything has ended. Call it after ctx has ended.
func Start(ctx context.Context, config Config) (wait func(), err error) {
	if config.SecureServing == nil {
		return func() {}, nil
	}
	stopped, listenerStopped, err := config.SecureServing.Serve(Handler(config), shutdownTimeout, ctx.Done())
	if err != nil {
		return nil, fmt.Errorf("serving HTTPS: %w", err)
	}
	var logging sync.WaitGroup
	logging.Go(func() { logExpiration(ctx, config.SecureServing.Cert) })
	return func() {
		logging.Wait()
		<-listenerStopped
		<-stopped
	}, nil
}

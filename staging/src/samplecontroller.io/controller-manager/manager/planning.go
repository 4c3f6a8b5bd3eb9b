// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/supervisor"
)

// serviceAccountUser begins the user name of a ServiceAccount.
const serviceAccountUser = "system:serviceaccount:"

// plan calls each enabled controller once for each object, and returns what they would write. The options must be
// complete. It returns an error if nothing could be planned.
func (p Program) plan(ctx context.Context, o *options.Options, own planOptions) (plan.Report, error) {
	c, err := o.ConfigWithoutServing()
	if err != nil {
		return plan.Report{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, own.timeout, fmt.Errorf("the plan took longer than --timeout %v", own.timeout))
	defer cancel()
	recorder := &plan.Recorder{}
	c.DryRun = recorder
	// No Lease can expire. The daemon gives a write more time only after the first try.
	c.LeaderElection.WriteTimeout = max(c.LeaderElection.WriteTimeout, c.Generic.SyncTimeout)
	if own.as != "" {
		c.ClientConfig.Impersonate = restclient.ImpersonationConfig{UserName: own.as}
		if err := p.checkImpersonation(ctx, c.ClientConfig, own.as); err != nil {
			return plan.Report{}, err
		}
	}
	if generic := c.Generic; generic.UseServiceAccountCredentials && (own.as != "" || !hasPodCredentials(o)) {
		generic.UseServiceAccountCredentials = false // impersonate each account, instead of a request for its token
		if strings.HasPrefix(own.as, serviceAccountUser) {
			recorder.Account = func(controller string) string { return own.as + "-" + controller }
		}
	}
	shared, _, err := p.newShared(ctx, c, metricsOf(p.Name))
	if err != nil {
		return plan.Report{}, err
	}
	defer shared.Events.Shutdown()
	controllers, err := c.Controllers.Build(ctx, shared, c.Enabled)
	if err != nil {
		return plan.Report{}, err
	}
	stopPauses, err := shared.StartPauses(ctx)
	if err != nil {
		return plan.Report{}, err
	}
	defer stopPauses()
	err = leadership.RunWithoutElection(ctx, shared.Gate, func(*leadership.Term) error {
		return planOnce(ctx, shared.Informers, controllers, recorder)
	})
	report := recorder.Report()
	report.Account, report.PausedObjects = own.as, shared.PausedObjects()
	return report, err
}

// checkImpersonation returns an error if the credentials are rejected, or may not impersonate the account.
func (p Program) checkImpersonation(ctx context.Context, config *restclient.Config, as string) error {
	config = restclient.CopyConfig(config)
	config.UserAgent, config.Timeout = p.userAgent("plan"), requestTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client %s: %w", config.UserAgent, err)
	}
	_, err = client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "impersonate"):
		return nil // it does not say who asks
	case apierrors.IsForbidden(err):
		return fmt.Errorf("planning as %s: %w; get the permission to impersonate it, name another account with --as, "+
			`or plan with your own permissions by --as=""`, as, err)
	default:
		return fmt.Errorf("planning as %s: %w", as, err)
	}
}

// planOnce runs all loops once. What fails is recorded.
func planOnce(
	ctx context.Context, factory *informers.Factory, controllers []controller.Controller, recorder *plan.Recorder,
) error {
	factory.Start(ctx)
	defer factory.Shutdown()
	if !factory.WaitUntilSettled(ctx) {
		return fmt.Errorf("reading the objects: %w%s", context.Cause(ctx), unread(factory))
	}
	var planning sync.WaitGroup
	for _, c := range controllers {
		looper, ok := c.(supervisor.Looper)
		if err := controller.Unbuilt([]controller.Controller{c}); err != nil {
			recorder.Fail(c.Name(), err)
			continue
		}
		if !ok || len(looper.Loops()) == 0 {
			recorder.NotPlanned(c.Name())
			continue
		}
		for _, loop := range looper.Loops() {
			planning.Go(func() {
				if err := loop.Once(ctx); err != nil && ctx.Err() == nil {
					recorder.Fail(c.Name(), err)
				}
			})
		}
	}
	planning.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// unread returns the resources that have not been read, and why.
func unread(factory *informers.Factory) string {
	var reasons []string
	for _, resource := range factory.Resources() {
		if resource.Err != nil {
			reasons = append(reasons, resource.Err.Error())
		}
	}
	slices.Sort(reasons)
	if len(reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(reasons, "; ")
}

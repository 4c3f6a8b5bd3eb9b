// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/version"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/truncate"
)

// maxFacts is the maximum number of facts shown for an object.
const maxFacts = 50

// reporter reports what a process is doing.
type reporter struct {
	parts
	super *supervisor.Supervisor
}

var _ debug.Source = reporter{}

// Resolve implements debug.Source.
func (r reporter) Resolve(given string) (string, error) { return r.config.Controllers.Resolve(given) }

// Report implements debug.Source.
func (r reporter) Report(limit int) debug.Report {
	report := debug.Report{
		Program: r.config.Name, Version: version.Get().GitVersion, Time: time.Now(), Namespace: r.config.Generic.Namespace,
		Leader: "leader election is off: run one replica only", Leading: true,
		ConfigRefused: r.live.problem(),
	}
	if r.shared.DryRun.IsShadow() {
		report.Leader, report.Leading, report.Shadow = shadowNote, false, shadowOf(r.parts, limit)
	}
	if r.election != nil {
		status := r.election.Status()
		report.Process, report.Leader, report.Leading = r.election.Identity(), status.String(), status.Leading
	}
	unhealthy := map[string]string{}
	for _, check := range r.super.HealthChecks() {
		if err := check.Check(nil); err != nil {
			unhealthy[check.Name()] = truncate.Error(err)
		}
	}
	for _, status := range r.super.Status(limit) {
		pauses := r.shared.PausesOf(status.Controller)
		report.Controllers = append(report.Controllers, debug.Controller{
			Name: status.Controller, State: string(status.State), Since: status.Since, Reason: truncate.Text(status.Reason),
			Unhealthy: unhealthy[status.Controller], Queues: status.Loops,
			Paused: pauses.Controller, PausedUntil: pauses.Until, PausedObjects: pauses.Objects,
		})
	}
	for _, resource := range r.shared.Informers.Resources() {
		report.Resources = append(report.Resources, debug.Resource{
			Name: resource.Name(), Served: resource.Served, Since: resource.Since,
			Reason:  truncate.Error(cmp.Or(resource.Err, resource.Failure)),
			Objects: resource.Objects, LastSign: resource.LastSign,
		})
	}
	return report
}

// Explain implements debug.Source.
func (r reporter) Explain(name string, key cache.ObjectName) (debug.Explanation, error) {
	e := debug.Explanation{Controller: name, Object: key.String(), Time: time.Now()}
	for _, status := range r.super.Status(0) {
		if status.Controller == name {
			e.State, e.Reason = string(status.State), truncate.Text(status.Reason)
		}
	}
	if e.State == string(supervisor.Standby) && r.election != nil {
		e.Reason = r.election.Status().String()
	}
	if e.State == string(supervisor.Disabled) {
		e.Next = "nothing: " + name + " is disabled in this process"
		return e, nil
	}
	if r.config.Generic.Namespace != "" && key.Namespace != r.config.Generic.Namespace {
		e.Next = fmt.Sprintf("nothing: this process serves only namespace %q", r.config.Generic.Namespace)
		return e, nil
	}
	for _, c := range r.controllers {
		explainer, ok := c.(controller.Explainer)
		if !ok || c.Name() != name {
			continue
		}
		explanation, err := explainer.Explain(key)
		if err != nil {
			return debug.Explanation{}, err
		}
		e.Explanation = boundedExplanation(explanation)
		if e.Found && !atWork(supervisor.State(e.State)) {
			e.Next = "nothing while " + name + " is " + e.State + "; when it runs: " + e.Next
		}
		if looper, ok := c.(supervisor.Looper); ok {
			for _, loop := range looper.Loops() {
				p := loop.ProgressOf(key)
				e.Running = append(e.Running, p.Running.First...)
				e.Waiting = append(e.Waiting, p.Waiting.First...)
				e.Delayed = append(e.Delayed, p.Delayed.First...)
				e.Syncs = append(e.Syncs, p.Recent...)
			}
		}
		return e, nil
	}
	return debug.Explanation{}, debug.ErrNoExplanation
}

// atWork reports whether a controller in the state may write. A Degraded controller may: it
// lacks the permission for some writes only.
func atWork(state supervisor.State) bool {
	return state == supervisor.Running || state == supervisor.Degraded
}

// boundedExplanation limits the length of each text and the number of facts.
func boundedExplanation(e controller.Explanation) controller.Explanation {
	bounded := controller.Explanation{Found: e.Found, Next: truncate.Text(e.Next)}
	for i, f := range e.Facts {
		if i == maxFacts {
			bounded.Facts = append(bounded.Facts, controller.Fact{Name: fmt.Sprintf("and %d more", len(e.Facts)-i)})
			break
		}
		f.Wanted, f.Actual = truncate.Text(f.Wanted), truncate.Text(f.Actual)
		bounded.Facts = append(bounded.Facts, f)
	}
	return bounded
}

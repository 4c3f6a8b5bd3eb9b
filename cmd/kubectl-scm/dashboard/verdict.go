// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// Where a problem is.
const (
	inCluster     = "Cluster"
	inPermissions = "Permissions"
	inDaemon      = "Daemon"
	inObjects     = "Objects"
)

// problem is what is wrong, and what to do. Neither text changes while the problem stays the same: a screen reader
// reads the verdict when it changes.
type problem struct {
	Where, Text, Next string
	// Link is a path of the dashboard.
	Link string
}

// verdict says in one sentence whether the daemon, the cluster or an object has a problem.
type verdict struct {
	// Known is false while too little was read.
	Known    bool
	Problems []problem // the worst first
}

// Word says it in a word, for those who do not see the color.
func (v verdict) Word() string {
	switch {
	case len(v.Problems) > 0:
		return "bad"
	case v.Known:
		return "good"
	default:
		return "unknown"
	}
}

func newVerdict(s *snapshot) verdict {
	var v verdict
	v.add(accessProblem(s))
	if len(v.Problems) == 0 {
		v.add(leaderProblem(s))
	}
	if len(v.Problems) == 0 {
		v.add(reportProblem(s))
	}
	report := s.Report.Value
	if s.Report.Err != nil || s.Report.old(s.Now) {
		report = debug.Report{} // what it said may be over
	}
	v.Problems = append(v.Problems, controllerProblems(report)...)
	v.add(replicaProblem(s))
	if stalled := stalledProblem(s); stalled != nil {
		v.add(stalled)
	} else {
		v.add(failingProblem(report))
	}
	v.Known = s.Lead.Known() && s.Report.Known()
	for _, o := range s.kinds {
		heard, complete := o.state()
		v.Known = v.Known && complete
		if heard.Err != nil {
			v.add(unread(o.kind.Resource.Resource, heard.Err))
		}
	}
	return v
}

func (v *verdict) add(p *problem) {
	if p != nil {
		v.Problems = append(v.Problems, *p)
	}
}

// accessProblem returns why the Lease cannot be read. It is read most often.
func accessProblem(s *snapshot) *problem {
	err := s.Lead.Err
	if err == nil && s.Lead.Known() && s.Lead.old(s.Now) {
		err = context.DeadlineExceeded // a request hangs
	}
	if err == nil {
		return nil
	}
	return unread("the Lease", err)
}

// unread returns the problem that something cannot be read from the API server.
func unread(what string, err error) *problem {
	text := short(err)
	switch {
	case unreachable(err):
		return &problem{inCluster, "the API server does not answer", "check the network and the context of your kubeconfig: kubectl get --raw /readyz", ""}
	case apierrors.IsUnauthorized(err):
		return &problem{inPermissions, "the API server does not accept your credentials", "log in again, or check --kubeconfig and --context", ""}
	case strings.Contains(text, "403: may not"):
		said, next, _ := strings.Cut(text, "; ")
		return &problem{inPermissions, "you may not read " + what + ": " + said, cmp.Or(next, "ask for the permission"), ""}
	case strings.HasPrefix(text, "nobody leads"):
		said, next, _ := strings.Cut(text, "; ")
		return &problem{inDaemon, said, cmp.Or(next, "see the replicas below"), ""}
	case apierrors.IsNotFound(err):
		return &problem{inCluster, what + " are not served", "install the CRDs of this version", ""}
	default:
		return &problem{inCluster, "cannot read " + what + ": " + text, "check the API server: kubectl get --raw /readyz", ""}
	}
}

// unreachable returns whether an error is that of a connection, or the API server has trouble of its own.
func unreachable(err error) bool {
	return errors.As(err, new(*url.Error)) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// leaderProblem returns why nobody leads.
func leaderProblem(s *snapshot) *problem {
	lead := s.Lead.Value
	next := "see the replicas below, and the log of one: kubectl logs"
	switch {
	case !s.Lead.Known():
		return nil
	case lead.Holder == "":
		return &problem{inDaemon, "nobody leads: no replica can get the Lease, or none runs", next, ""}
	case s.expired():
		return &problem{inDaemon, "nobody leads: " + lead.Pod + " does not renew the Lease any more, and no other replica took it", next, ""}
	default:
		return nil
	}
}

// reportProblem returns why the leader does not report.
func reportProblem(s *snapshot) *problem {
	err := s.Report.Err
	if err == nil && s.Report.Known() && s.Report.old(s.Now) {
		err = errors.New("a request hangs")
	}
	if err == nil {
		return nil
	}
	text := short(err)
	if strings.Contains(text, "403: may not") {
		said, next, _ := strings.Cut(text, "; ")
		return &problem{inPermissions, "you may not ask the leader: " + said, cmp.Or(next, "ask for the permission"), ""}
	}
	return &problem{inDaemon, "the leader renews its Lease, but does not answer: " + text, "see the replicas below, and its log: kubectl scm logs", ""}
}

// controllerProblems returns what the daemon says about itself and about what it reads.
func controllerProblems(report debug.Report) []problem {
	var problems []problem
	add := func(where, link, next, format string, args ...any) {
		problems = append(problems, problem{where, truncated(debug.Short(fmt.Sprintf(format, args...)), 400), next, link})
	}
	for _, r := range report.Resources {
		if !r.Served {
			add(inCluster, "", "install what is missing, or grant the permission: the daemon then recovers by itself",
				"the daemon cannot read %s: %s", r.Name, cmp.Or(r.Reason, "it is not served"))
		}
	}
	for _, c := range report.Controllers {
		switch {
		case c.State == "Degraded" || c.State == "WaitingForAPI":
			add(inDaemon, controllerPath(c.Name), "see its page", "%s is %s: %s", c.Name, c.State, c.Reason)
		case c.Unhealthy != "":
			add(inDaemon, controllerPath(c.Name), "see its page", "%s is unhealthy: %s", c.Name, c.Unhealthy)
		}
	}
	if report.ConfigRefused != "" {
		add(inDaemon, "", "correct the file; restart the daemon only if the reason says so", "the configuration file is refused: %s", report.ConfigRefused)
	}
	return problems
}

// replicaProblem returns which replicas are not ready.
func replicaProblem(s *snapshot) *problem {
	pods := s.Pods.Value
	unready := len(pods) - cluster.ReadyPods(pods)
	if unready == 0 {
		return nil
	}
	return &problem{inDaemon, fmt.Sprintf("%d of %d replicas are not ready", unready, len(pods)), "see the replicas below", ""}
}

// stalledProblem returns the object that has been Stalled the longest.
func stalledProblem(s *snapshot) *problem {
	stalled := 0
	var first *cluster.Object
	for _, o := range find(s.kinds, filter{State: broken}) {
		if o.Condition == "Stalled" {
			stalled++
			if first == nil {
				first = o
			}
		}
	}
	if first == nil {
		return nil
	}
	text := fmt.Sprintf("%s %s is Stalled: %s: %s", first.Kind, first.Key(), first.Reason, truncated(first.Message, 120))
	if stalled > 1 {
		text = fmt.Sprintf("%d objects are Stalled; the longest: %s", stalled, text)
	}
	return &problem{inObjects, text, first.Next, objectPath(*first)}
}

// failingProblem returns the key that has failed most often in a row, if that is more often than a conflict explains.
func failingProblem(report debug.Report) *problem {
	var worst *problem
	most := 3
	for _, c := range report.Controllers {
		for _, q := range c.Queues {
			for _, entry := range slices.Concat(q.Running.First, q.Waiting.First, q.Delayed.First) {
				if entry.Retries > most {
					most = entry.Retries
					text := c.Name + " fails for " + entry.Key + ": " + debug.Short(entry.Error)
					worst = &problem{inObjects, truncated(text, 400), "wait, it is tried again; see its page",
						cmp.Or(keyPath(c.Name, entry.Key), controllerPath(c.Name))}
				}
			}
		}
	}
	return worst
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"samplecontroller.io/controller-manager/internal/writes"
)

// Verbs of changes that are not requests.
const (
	// VerbFinalize is the verb of a finalizer's function, which is not called.
	VerbFinalize = "finalize"
)

// Change is a write that a controller would make.
type Change struct {
	// Controller is the name of the controller, and For the object that it reconciles.
	Controller string `json:"controller"`
	For        string `json:"for"`
	// Verb is an RBAC verb, or finalize. Resource is such as deployments.apps or foos/status.example.com.
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Fields are the first changed fields, such as spec.replicas. There are none if the object is created or deleted.
	Fields []string `json:"fields,omitempty"`
	// Finalizer is the finalizer whose function would be called.
	Finalizer string `json:"finalizer,omitempty"`
	// Before and After are the object as YAML, empty if there is none. They lack what the API server sets.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`

	delay         time.Duration // see Delayed
	isUnsupported bool          // a webhook refused it because it was a dry run
	isForbidden   bool          // the account may not make it, which no status says
}

// ObjectName returns namespace and name of the object.
func (c Change) ObjectName() string {
	if c.Namespace == "" || c.Resource == "namespaces" {
		return c.Name
	}
	return c.Namespace + "/" + c.Name
}

// String returns the write, such as: patch deployments.apps ns/web.
func (c Change) String() string { return fmt.Sprintf("%s %s %s", c.Verb, c.Resource, c.ObjectName()) }

func (c Change) isStatus() bool {
	return writes.Target{Write: writes.Write{Resource: c.Resource}}.Subresource() == "status"
}

// Problem is why a write, or what a controller would do for an object, is not known.
type Problem struct {
	Controller string `json:"controller,omitempty"`
	// For is the object that the controller reconciles, empty if the problem is not about one. Write is
	// the write that failed, empty if there is none.
	For     string `json:"for,omitempty"`
	Write   string `json:"write,omitempty"`
	Message string `json:"message"`
}

// String returns the problem in one line.
func (p Problem) String() string {
	text := p.Message
	if p.Write != "" {
		text = p.Write + ": " + text
	}
	switch {
	case p.Controller == "":
		return text
	case p.For == "":
		return p.Controller + ": " + text
	default:
		return fmt.Sprintf("%s for %s: %s", p.Controller, p.For, text)
	}
}

// Recorder records what controllers would write. It is safe for concurrent use. The zero value records a
// plan; [NewShadow] returns one for a shadow.
type Recorder struct {
	// Account returns the user as which a controller writes, by impersonation. If nil, it writes as the program.
	Account func(controller string) string

	shadow *differences // nil for a plan
	mutex  sync.Mutex
	report Report
}

// NewShadow returns the recorder of a process that keeps running: it records the writes that are
// still wanted after [Lasting].
func NewShadow() *Recorder { return &Recorder{shadow: newDifferences()} }

// IsShadow reports whether the process keeps running.
func (r *Recorder) IsShadow() bool { return r != nil && r.shadow != nil }

// call is one call of a controller for an object.
type call struct {
	controller, key string

	mutex           sync.Mutex
	changes         []Change // of dry runs that succeeded
	refused         []Change // of all others
	hasStatus       bool     // see ComparedStatus
	inStatus        int      // number of refused writes before the status was compared
	unknown, errors []Problem
}

type callKey struct{}

// Begin returns the context of a sync, in which writes are recorded, and a function to call with its error. If the
// sync is tried again, nothing is recorded. end returns after how long the sync is to be called again; 0 means not
// because of what was recorded.
func (r *Recorder) Begin(ctx context.Context, controller, queue, key string) (
	recorded context.Context, end func(again bool, err error) time.Duration) {
	s := &call{controller: controller, key: key}
	return context.WithValue(ctx, callKey{}, s), func(again bool, err error) time.Duration {
		if again {
			return 0
		}
		return r.end(queue, s, err)
	}
}

func (r *Recorder) end(queue string, s *call, err error) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	isOther := err != nil && len(s.refused) == 0
	if isOther {
		s.errors = append(s.errors, Problem{Controller: s.controller, For: s.key, Message: err.Error()})
	}
	isStatus, tried, others := Change.isStatus, slices.Concat(s.changes, s.refused), s.refused
	if r.shadow != nil { // the status says what is refused, to the leader, too
		isSaid := func(c Change) bool { return !c.isUnsupported && !c.isForbidden && !isStatus(c) }
		others = slices.Concat(slices.DeleteFunc(slices.Clone(s.refused[:s.inStatus]), isSaid), s.refused[s.inStatus:])
	}
	// A status would describe what the API server answers to the real write. A dry run does not tell.
	followed := 0
	if isOther || slices.ContainsFunc(slices.Concat(s.changes, others), func(c Change) bool { return !isStatus(c) }) {
		all := len(s.changes)
		s.changes = slices.DeleteFunc(s.changes, isStatus)
		followed = all - len(s.changes)
	}
	if r.shadow != nil {
		isKept := func(c Change) bool { // the sync may not have got to it
			return err != nil && !(s.hasStatus && isStatus(c)) &&
				!slices.ContainsFunc(tried, func(t Change) bool { return t.id() == c.id() })
		}
		return r.shadow.update(syncID{s.controller, queue, s.key}, slices.Concat(s.changes, others), isKept, time.Now())
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.report.Changes = append(r.report.Changes, s.changes...)
	r.report.Unknown = append(r.report.Unknown, s.unknown...)
	r.report.Errors = append(r.report.Errors, s.errors...)
	r.report.FollowingStatuses += followed
	return 0
}

// Finalize records that the function of a finalizer would be called.
func Finalize(ctx context.Context, c Change) {
	if s, ok := ctx.Value(callKey{}).(*call); ok {
		c.Controller, c.For, c.Verb = s.controller, s.key, VerbFinalize
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.changes = append(s.changes, c)
	}
}

// ComparedStatus records that the status of the object is as wanted, or can be written. A shadow then expects it to say
// which writes were refused before.
func ComparedStatus(ctx context.Context) {
	if s, ok := ctx.Value(callKey{}).(*call); ok {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.hasStatus, s.inStatus = true, len(s.refused)
	}
}

type delayKey struct{}

// Delayed returns the context of a write that the leader may delay by at most d, so that a shadow waits longer for it.
func Delayed(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, delayKey{}, d)
}

// Fail adds an error of the plan.
func (r *Recorder) Fail(controller string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	problem := Problem{Controller: controller, Message: err.Error()}
	if !slices.Contains(r.report.Errors, problem) { // of another queue of the controller
		r.report.Errors = append(r.report.Errors, problem)
	}
}

// NotPlanned adds a controller that cannot be planned, because it has no loop.
func (r *Recorder) NotPlanned(controller string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.report.NotPlanned = append(r.report.NotPlanned, controller)
}

// Report returns the plan, sorted.
func (r *Recorder) Report() Report {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	report := r.report
	report.Changes = slices.SortedStableFunc(slices.Values(report.Changes), func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.For, b.For))
	})
	problems := func(all []Problem) []Problem {
		return slices.SortedStableFunc(slices.Values(all), func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.For, b.For))
		})
	}
	report.Unknown, report.Errors = problems(report.Unknown), problems(report.Errors)
	slices.Sort(report.NotPlanned)
	return report
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// fake is a Source and a Replica. Its fields may change while locked.
type fake struct {
	sync.Mutex
	lead      cluster.Lead
	handovers []cluster.Handover
	pods      []cluster.Pod
	events    []cluster.Event
	report    debug.Report
	explained debug.Explanation
	objects   []cluster.Object
	// failures are the errors of the sources by their names: lead, handovers, pods, object, events, watch, dial, report.
	failures map[string]error
	dialed   int
}

// answer returns what a source says.
func answer[T any](f *fake, source string, value *T) (T, error) {
	f.Lock()
	defer f.Unlock()
	if err := f.failures[source]; err != nil {
		var none T
		return none, err
	}
	return *value, nil
}

func (f *fake) Lead(context.Context) (cluster.Lead, error) { return answer(f, "lead", &f.lead) }
func (f *fake) Handovers(context.Context) ([]cluster.Handover, error) {
	return answer(f, "handovers", &f.handovers)
}
func (f *fake) Pods(context.Context) ([]cluster.Pod, error) { return answer(f, "pods", &f.pods) }
func (f *fake) Object(context.Context, cluster.Kind, string, string) (cluster.Object, error) {
	return answer(f, "object", &f.objects[0])
}
func (f *fake) Events(context.Context, cluster.Kind, string, string) ([]cluster.Event, error) {
	return answer(f, "events", &f.events)
}
func (f *fake) Watch(ctx context.Context, kind cluster.Kind, _ string, w cluster.Watcher) error {
	objects, err := answer(f, "watch", &f.objects)
	if err != nil {
		w.Failed(err)
		<-ctx.Done()
		return nil
	}
	w.Heard()
	for _, o := range objects {
		if o.Kind == kind.Name {
			w.Changed(o)
		}
	}
	w.Complete()
	<-ctx.Done()
	return nil
}

func (f *fake) Dial(context.Context) (Replica, error) {
	f.Lock()
	defer f.Unlock()
	f.dialed++
	return f, f.failures["dial"]
}
func (f *fake) Report(context.Context, string, int) (debug.Report, error) {
	return answer(f, "report", &f.report)
}
func (f *fake) Explain(context.Context, string, string, string) (debug.Explanation, error) {
	return answer(f, "explain", &f.explained)
}
func (f *fake) Close() {}

// stalled returns an object that is Stalled.
func stalled(name string, since time.Time) cluster.Object {
	return cluster.Object{Kind: "Foo", Namespace: "shop", Name: name, Condition: "Stalled", Reason: "WriteDenied",
		Message: `creating Deployment ` + name + ` was denied: deployments.apps "` + name + `" is forbidden: exceeded quota: none, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0`,
		Since:   since, Next: "do what the message says; it is tried again with backoff", Replicas: 1}
}

// newFake returns a cluster in which all is well, with one Foo.
func newFake() *fake {
	now := time.Now()
	running := func(name string) debug.Controller {
		return debug.Controller{Name: name, State: "Running", Since: now.Add(-time.Hour),
			Queues: []reconcile.Progress{{Queue: name, LastSuccess: now, Syncs: 10}}}
	}
	return &fake{
		lead: cluster.Lead{Holder: "pod-a_1", Pod: "pod-a", Since: now.Add(-time.Hour), Renewed: now,
			Duration: time.Hour, Transitions: 3},
		handovers: []cluster.Handover{{Time: now.Add(-50 * time.Minute), Process: "pod-b_2", What: stopped},
			{Time: now.Add(-49 * time.Minute), Process: "pod-a_1", What: became}},
		pods: []cluster.Pod{{Name: "pod-a", Ready: true, Created: now.Add(-time.Hour)}},
		report: debug.Report{Program: cluster.Daemon, Process: "pod-a_1", Time: now, Leading: true,
			Controllers: []debug.Controller{running("foo-controller"), running("icecream-controller"), running("status-aggregator-controller")}},
		explained: explanation(now),
		objects:   []cluster.Object{{Kind: "Foo", Namespace: "shop", Name: "ready", Condition: "Ready", Reason: "Available", Since: now}},
		failures:  map[string]error{},
	}
}

var errDown = errors.New("dial tcp 127.0.0.1:10261: connect: connection refused")

// explanation returns what the daemon does about an object that it tries again.
func explanation(now time.Time) debug.Explanation {
	e := debug.Explanation{Controller: "foo-controller", Object: "shop/a", State: "Running", Time: now,
		Delayed: []reconcile.Entry{{Key: "shop/a", Trigger: "retry", Time: now.Add(time.Minute), Retries: 7, Error: "denied"}}}
	// The type is that of another package, which the plugin need not know.
	if err := json.Unmarshal([]byte(`{"found": true, "next": "nothing", "facts": [{"name": "replicas", "wanted": "1", "actual": "0", "differs": true}]}`), &e.Explanation); err != nil {
		panic(err)
	}
	return e
}

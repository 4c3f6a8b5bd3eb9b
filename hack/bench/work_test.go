// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/process"
	"samplecontroller.io/sample-controller-manager/hack/faulty"
)

const (
	served  = 300 // Foos that are made at once
	changed = 60  // Foos that are changed one after another
)

// work is how fast Foos are served.
type work struct {
	perSecond float64         // of those that are made at once, until each has a status
	latencies []time.Duration // from a change of a Foo until the write for it
	cpu       time.Duration   // of the daemon, from its start to its end
}

// startFaulty starts the daemon with the faulty controller and returns when it leads.
func (l *lab) startFaulty(ctx context.Context) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := l.cluster.ServiceAccountKubeconfig(ctx, daemonName, daemonName)
	if err != nil {
		return nil, err
	}
	_, args, err := l.ours().command(kubeconfig, usual)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("faulty-%d", l.started.Add(1))
	p, err := l.group.Start(name, nil, self, append([]string{faulty.Argument}, args...)...)
	if err != nil {
		return nil, err
	}
	return p, await(ctx, "the daemon works", pollInterval, func() error {
		log, err := os.ReadFile(l.group.LogPath(name))
		if err == nil && strings.Count(string(log), "Starting workers") < 5 {
			err = errors.New("not yet")
		}
		return errors.Join(err, p.Err())
	})
}

// measure has Foos served.
func (l *lab) measure(ctx context.Context, prefix string) (w work, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := l.serve(ctx, prefix); err != nil {
		return w, err
	}
	w.perSecond = served / time.Since(began).Seconds()
	for i := range changed {
		if err := l.change(ctx, fmt.Sprintf("%s-%d", prefix, i)); err != nil {
			return w, err
		}
	}
	w.latencies, err = l.latencies(prefix, began)
	return w, err
}

// serve makes Foos and returns when each has a status.
func (l *lab) serve(ctx context.Context, prefix string) error {
	foos := l.sample.SamplecontrollerV1alpha1().Foos(namespace)
	errs := make([]error, served)
	var making sync.WaitGroup
	defer making.Wait()
	making.Go(func() {
		workqueue.ParallelizeUntil(ctx, 16, served, func(i int) {
			name := fmt.Sprintf("%s-%d", prefix, i)
			_, errs[i] = foos.Create(ctx, &samplev1alpha1.Foo{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](0)},
			}, metav1.CreateOptions{})
		})
	})
	done := map[string]bool{}
	for len(done) < served {
		if err := l.noteServed(ctx, prefix, done); err != nil {
			return fmt.Errorf("of %d Foos %d were served: %w", served, len(done), err)
		}
	}
	making.Wait()
	return errors.Join(errs...)
}

// noteServed notes which Foos have a status until all have, or until the watch of them
// ends, as the API server ends each when the CRD has been changed.
func (l *lab) noteServed(ctx context.Context, prefix string, done map[string]bool) error {
	// It begins with what there is.
	w, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	for len(done) < served {
		event, ok := <-w.ResultChan()
		if !ok {
			return ctx.Err()
		}
		foo, ok := event.Object.(*samplev1alpha1.Foo)
		if ok && strings.HasPrefix(foo.Name, prefix+"-") && foo.Status.ObservedGeneration == foo.Generation {
			done[foo.Name] = true
		}
	}
	return nil
}

// change changes a Foo and returns when its Deployment has been.
func (l *lab) change(ctx context.Context, name string) error {
	w, err := l.ours().watch(ctx, name)
	if err != nil {
		return err
	}
	defer w.Stop()
	to := "nginx:" + name
	if err := l.ours().change(ctx, name, to); err != nil {
		return err
	}
	for {
		event, ok := <-w.ResultChan()
		if !ok {
			return fmt.Errorf("nobody wrote for %s", name)
		}
		if l.ours().written(event.Object, to) {
			return nil
		}
	}
}

// latencies finds in the audit log how long each change of a Foo took until its
// Deployment was written.
func (l *lab) latencies(prefix string, since time.Time) ([]time.Duration, error) {
	events, err := l.cluster.AuditEvents(cluster.InNamespace(namespace), func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(since) && (event.Verb == "patch" || event.Verb == "update") && strings.HasPrefix(event.ObjectRef.Name, prefix+"-")
	})
	if err != nil {
		return nil, err
	}
	at, latencies := map[string]time.Time{}, map[string]time.Duration{}
	slices.SortFunc(events, func(a, b auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	for _, event := range events {
		name := event.ObjectRef.Name
		switch began, ok := at[name]; {
		case cluster.Call(event) == "patch foos":
			at[name] = event.RequestReceivedTimestamp.Time
		case cluster.Call(event) == "update deployments/scale" && ok && latencies[name] == 0:
			latencies[name] = event.RequestReceivedTimestamp.Sub(began)
		}
	}
	if len(latencies) != changed {
		return nil, fmt.Errorf("the audit log has writes for %d of %d changes", len(latencies), changed)
	}
	var all []time.Duration
	for _, latency := range latencies {
		all = append(all, latency)
	}
	return all, nil
}

// deleteAll deletes all Foos and their Deployments, which nobody else does here.
func (l *lab) deleteAll(ctx context.Context) error {
	var errs []error
	for _, ns := range []string{namespace, troubled} {
		// By a client that does not decode what it has deleted.
		foos := l.sample.SamplecontrollerV1alpha1().RESTClient().Delete().Namespace(ns).Resource("foos").Do(ctx).Error()
		errs = append(errs, foos, l.kube.AppsV1().Deployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	return errors.Join(errs...)
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// answerOf is what has to become of a change.
type answerOf int

const (
	deploymentAnswer answerOf = iota // the Deployment is written
	statusAnswer                     // and then the status of the Foo
	readyAnswer                      // the status says that a replica is available
)

// load is something that contestants have to cope with.
type load struct {
	name  string
	about string // with the number of Foos
	foos  int    // unless told otherwise
	nodes int    // of the cluster; without, an API server is alone
	// served says that there are Foos to begin with, with Deployments and statuses.
	served bool
	// before says that the changes are made before the contestant starts, and that its
	// time begins then.
	before bool
	// changes returns how many of the Foos are changed.
	changes func(foos int) int
	// change changes a Foo or its Deployment, and call is that in the audit log.
	change func(ctx context.Context, l *lab, namespace, name string) error
	call   string
	// every is the time between two changes; 0: as fast as 16 clients can.
	every time.Duration
	// answer is what is waited for.
	answer answerOf
	// hold is for how long it is looked at if nothing is changed.
	hold time.Duration
}

// creation is also how an API server is warmed up, and how the Foos of other loads are
// made.
var creation = load{
	name: "create", about: "%d Foos are made", foos: 1000,
	changes: all, change: create, call: "create foos", answer: statusAnswer,
}

var loads = []load{
	creation,
	{
		name: "scale", about: "each of %d Foos is scaled", foos: 1000, served: true,
		changes: all, change: scaleTo(2), call: "patch foos", answer: statusAnswer,
	},
	{
		name: "drift", about: "each Deployment of %d Foos is scaled by somebody else", foos: 1000, served: true,
		changes: all, change: drift, call: "patch deployments", answer: deploymentAnswer,
	},
	{
		name: "steady", about: "of %d Foos 40 are scaled each second, for half a minute at most", foos: 1000, served: true,
		changes: func(foos int) int { return min(foos, 30*40) }, every: time.Second / 40,
		change: scaleTo(2), call: "patch foos", answer: statusAnswer,
	},
	{
		name: "idle", about: "nothing happens to %d Foos for a minute", foos: 1000, served: true,
		changes: func(int) int { return 0 }, hold: time.Minute,
	},
	{
		name: "backlog", about: "it starts and meets %d Foos that nobody has served", foos: 1000,
		before: true, changes: all, change: create, call: "create foos", answer: statusAnswer,
	},
	{
		name: "restart", about: "it starts again on %d Foos, of which one was scaled meanwhile", foos: 1000, served: true,
		before: true, changes: func(int) int { return 1 }, change: scaleTo(2), call: "patch foos", answer: statusAnswer,
	},
	{
		name: "ready", about: "%d Foos are made on a whole cluster and get a Pod each", foos: 200, nodes: 3,
		changes: all, change: create, call: "create foos", answer: readyAnswer,
	},
}

func all(foos int) int { return foos }

func create(ctx context.Context, l *lab, namespace, name string) error {
	_, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](1)},
	}, metav1.CreateOptions{})
	return err
}

func scaleTo(replicas int) func(ctx context.Context, l *lab, namespace, name string) error {
	return func(ctx context.Context, l *lab, namespace, name string) error {
		_, err := l.sample.SamplecontrollerV1alpha1().Foos(namespace).Patch(ctx, name, types.MergePatchType, replicasPatch(replicas), metav1.PatchOptions{})
		return err
	}
}

func drift(ctx context.Context, l *lab, namespace, name string) error {
	_, err := l.kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, replicasPatch(5), metav1.PatchOptions{})
	return err
}

func replicasPatch(replicas int) []byte {
	return fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
}

// chooseLoads returns the loads of these names.
func chooseLoads(names string) ([]load, error) {
	if names == "all" {
		return loads, nil
	}
	var chosen []load
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(loads, func(l load) bool { return l.name == name })
		if i < 0 {
			var known []string
			for _, l := range loads {
				known = append(known, l.name)
			}
			return nil, fmt.Errorf("there is no load %q; there are: %s, or all", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, loads[i])
	}
	return chosen, nil
}

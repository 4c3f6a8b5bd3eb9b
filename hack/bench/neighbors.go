// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// neighbors is how many namespaces have one Foo each.
const neighbors = 50

const neighborsWait = "first Deployment to those of neighbors"

// measureNeighbors measures how long namespaces with one Foo each wait behind one with many. It
// counts from the first Deployment, because a candidate takes its time to start.
func measureNeighbors(ctx context.Context, t *trial) (r result, err error) {
	t.changes = backlog()
	if err := t.makeChanges(ctx); err != nil {
		return r, err
	}
	isNeighbor := map[string]bool{}
	defer func() {
		for namespace := range isNeighbor {
			err = errors.Join(err, t.clear(context.WithoutCancel(ctx), namespace))
		}
	}()
	for i := range neighbors {
		namespace := fmt.Sprintf("%s-%d", t.namespace, i)
		isNeighbor[namespace] = true
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := t.kube.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return r, err
		}
		if err := create(ctx, t.harness, namespace, probe); err != nil {
			return r, err
		}
	}
	return t.measure(ctx, func(since time.Time) ([]value, error) {
		if err := t.start(ctx); err != nil {
			return nil, err
		}
		answers, err := t.awaitAnswers(ctx, since)
		if err != nil {
			return nil, err
		}
		var waits []time.Duration
		err = t.await(ctx, t.candidate.name+" has served the neighbors", func(context.Context) error {
			waits = nil
			created, err := t.cluster.AuditEvents(t.byCandidate, func(event auditv1.Event) bool {
				return cluster.Call(event) == "create deployments" && !refused(event) && event.RequestReceivedTimestamp.After(since)
			})
			for _, event := range created {
				if isNeighbor[event.ObjectRef.Namespace] {
					waits = append(waits, timeOf(event).Sub(timeOf(created[0])))
				}
			}
			if err == nil && len(waits) < neighbors {
				err = fmt.Errorf("%d of %d have a Deployment", len(waits), neighbors)
			}
			return err
		})
		return append(t.changes.read(answers, since), percentiles(neighborsWait, waits)...), err
	})
}

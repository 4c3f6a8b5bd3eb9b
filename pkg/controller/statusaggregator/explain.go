// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/tolerant"
)

// explain explains the object of one kind. next is "" if there is none.
type explain func(key cache.ObjectName) (facts []controller.Fact, next string, err error)

// Explain implements controller.Explainer. A key may match one object of each kind.
func (c *Controller) Explain(key cache.ObjectName) (controller.Explanation, error) {
	var e controller.Explanation
	var nexts []string
	for _, explain := range c.explains {
		facts, next, err := explain(key)
		if err != nil {
			return controller.Explanation{}, err
		}
		if next != "" {
			e.Facts, nexts = append(e.Facts, facts...), append(nexts, next)
		}
	}
	e.Found, e.Next = len(nexts) > 0, strings.Join(nexts, "; ")
	if !e.Found {
		e.Next = fmt.Sprintf("nothing: the cache has no object %q in namespace %q", key.Name, key.Namespace)
	}
	return e, nil
}

func (a *aggregator[T]) explain(key cache.ObjectName) (facts []controller.Fact, next string, err error) {
	cached, exists, err := a.objects.GetByKey(key.String())
	if err != nil || !exists {
		return nil, "", err
	}
	obj, kind := cached.(T), a.kind.groupVersionKind.Kind
	if tolerant.DecodeError(obj) != nil {
		return nil, kind + ": nothing: it cannot be decoded", nil
	}
	before, now, err := a.summaries(obj)
	if err != nil {
		return nil, "", err
	}
	fact := controller.Fact{Name: "Pod summary of the " + kind, Wanted: "(unknown: some Pods are not watched)", Differs: !same(before, now)}
	if now != nil {
		fact.Wanted = now.Summary
	}
	if before != nil {
		fact.Actual = before.Summary
	}
	wait, late := a.pace.Throttled(key, obj.GetUID()), a.consistency.Stale(key)
	switch {
	case !fact.Differs:
		next = "nothing: its status has the summary of its Pods"
	case late != "":
		next = late + "; then write its status"
	case wait > 0:
		next = fmt.Sprintf("write its status in %v; it was written just now", wait.Round(time.Millisecond))
	case before == nil && now.Total == 0:
		next = "write its status if it still has no Pods after the grace period"
	case lags(before, now):
		next = fmt.Sprintf("write generation %d into its status", now.ObservedGeneration)
	default:
		next = "write its status"
	}
	return []controller.Fact{fact}, kind + ": " + next, nil
}

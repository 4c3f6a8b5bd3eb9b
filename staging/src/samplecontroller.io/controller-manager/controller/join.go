// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
)

// Join returns one controller that runs several, which the same constructor has made with [For]. Each
// has a queue and workers of its own, so that an API of one kind that is not available delays no other
// kind. All but one need the option [Queue]. If one of them fails, all are restarted with backoff.
// Join returns an error if it gets no controller, one that another constructor or none of For has made, or
// two with one queue.
func Join(controllers ...Controller) (Controller, error) {
	if len(controllers) == 0 {
		return nil, misuse.Errorf("Join needs at least one controller")
	}
	j := &joined{name: controllers[0].Name(), controllers: controllers}
	var explainers []Explainer
	queues := map[string]bool{}
	for _, c := range controllers {
		looper, ok := c.(interface{ Loops() []*reconcile.Loop })
		if !ok || c.Name() != j.name {
			return nil, misuse.Errorf("Join of %s and %s: it joins only controllers of one constructor that are made with For", j.name, c.Name())
		}
		for _, loop := range looper.Loops() {
			if queues[loop.Queue()] {
				return nil, misuse.Errorf("Join: two controllers have the queue %s: give For the option Queue", loop.Queue())
			}
			queues[loop.Queue()] = true
			j.loops = append(j.loops, loop)
		}
		if explainer, ok := c.(Explainer); ok {
			explainers = append(explainers, explainer)
		}
	}
	if len(explainers) > 0 {
		return &joinedExplainers{j, explainers}, nil
	}
	return j, nil
}

type joined struct {
	name        string
	controllers []Controller
	loops       []*reconcile.Loop
}

// Name implements Controller.
func (j *joined) Name() string { return j.name }

// Loops returns the loops of all controllers, so that their progress is reported.
func (j *joined) Loops() []*reconcile.Loop { return j.loops }

// RunningSources returns the number of functions given to Source that have not returned.
func (j *joined) RunningSources() (n int) {
	for _, c := range j.controllers {
		if s, ok := c.(interface{ RunningSources() int }); ok {
			n += s.RunningSources()
		}
	}
	return n
}

// Run implements Controller.
func (j *joined) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(j.controllers))
	for _, c := range j.controllers {
		go func() {
			defer cancel()
			ended <- safely(func() error { return c.Run(ctx) })
		}()
	}
	var err error
	for range j.controllers {
		err = errors.Join(err, <-ended)
	}
	return err
}

// joinedExplainers also explains objects.
type joinedExplainers struct {
	*joined
	explainers []Explainer
}

// Explain implements Explainer. The key may be that of one object of each kind.
func (j *joinedExplainers) Explain(key cache.ObjectName) (Explanation, error) {
	var all Explanation
	var nexts []string
	for _, explainer := range j.explainers {
		e, err := explainer.Explain(key)
		if err != nil {
			return Explanation{}, err
		}
		if e.Found {
			all.Found, all.Facts, nexts = true, append(all.Facts, e.Facts...), append(nexts, e.Next)
		}
	}
	all.Next = strings.Join(nexts, "; ")
	if !all.Found {
		all.Next = "nothing: no cache has the object " + key.String()
	}
	return all, nil
}

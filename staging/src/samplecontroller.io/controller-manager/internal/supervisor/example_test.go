// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/supervisor"
)

// broken is a controller that fails at each start.
type broken struct{}

func (broken) Name() string              { return "broken-controller" }
func (broken) Run(context.Context) error { return errors.New("out of order") }

// idle is a controller that has nothing to do.
type idle struct{}

func (idle) Name() string { return "idle-controller" }

func (idle) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// A controller that fails stops no other.
func Example() {
	controllers := []controller.Controller{broken{}, idle{}}
	super := supervisor.New(controllers, supervisor.Options{ShutdownTimeout: 10 * time.Second})

	term, end := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- super.Run(term) }()
	for super.Status(0)[0].State != supervisor.Degraded {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(super.Status(0)[0].Reason)
	end()
	fmt.Println(<-ended)
	// Output:
	// out of order
	// <nil>
}

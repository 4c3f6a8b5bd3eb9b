// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"samplecontroller.io/controller-manager/leadership"
)

// Work that drains when its term ends, and returns when it has, is never done by
// two processes at once.
func ExampleElection_Run() {
	election, err := leadership.New(leadership.Config{
		Namespace:     "kube-system",
		Name:          "example",
		Identity:      "host_5b2ae4a2",
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Client:        fake.NewClientset().CoordinationV1(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, stop := context.WithCancel(context.Background())
	err = election.Run(ctx, func(term *leadership.Term) error {
		fmt.Println("leading")
		stop() // as a signal would
		<-term.Ctx.Done()
		fmt.Println("drained")
		return nil
	})
	fmt.Println("released:", err == nil)
	// Output:
	// leading
	// drained
	// released: true
}

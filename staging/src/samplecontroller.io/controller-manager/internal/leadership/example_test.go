// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/internal/leadership"
)

// Work that returns only after it has drained is never done by two processes at once.
func ExampleElection_Run() {
	gate := leadership.NewGate(3 * time.Second)
	election, err := leadership.New(leadership.Config{
		Namespace:     "kube-system",
		Name:          "example",
		Identity:      "host_5b2ae4a2",
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Gate:          gate, // around the clients of the work: see Gate.Wrap
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

// A client with a gate fails a write before it is sent, unless the process leads.
func ExampleGate_Wrap() {
	gate := leadership.NewGate(3 * time.Second)
	config := &rest.Config{Host: "https://kubernetes.default.svc"}
	config.Wrap(gate.Wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = client.CoreV1().ConfigMaps("default").Delete(context.Background(), "settings", metav1.DeleteOptions{})
	fmt.Println(errors.Is(err, leadership.ErrNotLeading))
	// Output: true
}

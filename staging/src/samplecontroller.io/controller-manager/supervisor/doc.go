// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs the enabled controllers of a process, each by itself,
// for one term of leadership at a time.
//
//	super := supervisor.New([]controller.Controller{broken{}, idle{}}, supervisor.Options{ShutdownTimeout: 10 * time.Second})
//
//	term, end := context.WithCancel(context.Background())
//	ended := make(chan error)
//	go func() { ended <- super.Run(term) }()
//	for super.Status(0)[0].State != supervisor.Degraded {
//		time.Sleep(time.Millisecond)
//	}
//	fmt.Println(super.Status(0)[0].Reason)
//	end()
//	fmt.Println(<-ended)
//
// [Supervisor.Run] starts them, starts again with backoff one that fails, and at
// the end of the term waits for all of them. A controller that fails or panics
// stops no other.
//
// [Supervisor.Status] tells what each is doing, since when and why. Of one that is a
// [Looper] it also tells what its loops do: one that waits for an API is
// [WaitingForAPI], one that lacks a permission is [Degraded]. Each has a health check
// that fails while it is degraded and while it runs without progress, by the
// [Thresholds]; standing by, waiting for an API and having nothing to do are no
// reasons to.
package supervisor

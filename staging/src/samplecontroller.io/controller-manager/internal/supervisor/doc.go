// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs the enabled controllers of a process for one term of leadership
// at a time.
//
//	controllers := []controller.Controller{broken{}, idle{}}
//	super := supervisor.New(controllers, supervisor.Options{ShutdownTimeout: 10 * time.Second})
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
// [Supervisor.Run] starts the controllers, restarts a failed one with backoff, and waits for
// all of them at the end of the term. A controller that fails or panics stops no other.
//
// [Supervisor.Status] reports what each controller is doing, since when and why. For a
// [Looper] that includes its loops: a controller that waits for an API is [WaitingForAPI],
// one without a needed permission is [Degraded].
//
// Each controller has a health check that fails while it is degraded, and while it runs
// without progress. Standing by, waiting for an API and having nothing to do are healthy.
package supervisor

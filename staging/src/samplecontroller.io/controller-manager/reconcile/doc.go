// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the one loop that every controller runs: informers enqueue
// keys, keys wait in a queue, workers take them to a sync function, and what
// fails is tried again.
//
//	loop := reconcile.New("settings-controller", sync, reconcile.WithWorkers(2))
//	reconcile.For(loop, configMaps.TypedInformer())
//	reconcile.Watch(loop, secrets.TypedInformer(), func(secret *corev1.Secret) []cache.ObjectName {
//		return []cache.ObjectName{cache.NewObjectName(secret.Namespace, secret.Name)}
//	})
//
//	factory.StartWithContext(ctx)
//	defer factory.Shutdown()
//	if err := loop.Run(ctx); err != nil {
//		fmt.Println(err)
//	}
//
// # What it promises
//
//   - A key is synced by one worker at a time, and again if it was enqueued
//     meanwhile.
//   - A key whose sync fails is retried with exponential backoff, without end:
//     no key is ever dropped. A conflict (409) is retried like an error, but
//     quietly: it means that the cache was late. The backoff of a forbidden
//     request (403) goes from 1 to 30 s.
//   - Namespaces take turns, so that one with thousands of keys delays no other.
//   - A key that its sync asked to be called again for comes after keys that changed. So a sync
//     can put off what is less urgent than the changes of other objects.
//   - A key whose caches have not yet seen its own last write, or what that was
//     refused for, is put off until they have, if the controller keeps a [ConsistencyStore].
//   - A sync that panics is an error of that key. It is counted, logged with
//     its stack and backed off, and the loop goes on.
//   - A handler that panics loses its event, since which keys it would have enqueued
//     is not known; it is counted and logged, and no other event is lost.
//   - A failed sync is logged as an error each time, a forbidden one at verbosity 2. The
//     logger that package manager sets up throttles errors that repeat.
//   - While an API that its informers read is unavailable, the loop is paused, with
//     [WithSources]. It starts again, with a full resync, when they have caught up.
//   - Where writes take long because there are many of them, fewer workers sync at once,
//     with [WithAdaptiveWorkers], so that no write is given up for that.
//   - Workers start when the informers and the loop's own handlers have seen
//     the initial list, not before.
//   - [Loop.Run] returns when every goroutine that it started has ended. It may
//     be called again: queue, handlers and workers are born in it and die with
//     it. Registering a handler on an informer that is already synced replays
//     its store, so each Run begins with a full resync from memory. What changed
//     last comes first in it, and what changes meanwhile comes before it.
//
// # What it tells
//
// An [Observer] is told of each sync by its [Outcome]. [Loop.Progress] tells at any time
// what the loop is at: what runs and waits and since when, what fails and why, and what
// was last done.
//
// # What it does not know
//
// Clients, listers, API types, status, Events, leadership. A sync function gets
// a key and reads what it needs from its own listers.
//
// # Resync
//
// The loop drops updates that do not change the resourceVersion, so an
// informer's resync period does not reach the sync function unless
// [WithResyncs] is given. Periodic work asks for itself: the sync function
// returns after how long it wants to be called again.
package reconcile

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile provides the worker loop of all controllers. Informers enqueue keys,
// workers call a sync function for each key, and failures are retried.
//
//	loop := reconcile.New("settings-controller", sync, reconcile.WithWorkers(2))
//	reconcile.WatchSelf(loop, configMaps.TypedInformer())
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
// Most controllers are made by controller.For, which runs on this loop, reads the object, and guards its
// writes. A program uses the loop itself if it wants the key and client-go alone.
//
// # Guarantees
//
//   - One worker at a time syncs a key. A key that is enqueued during its sync is synced
//     again.
//   - A failed key is retried with exponential backoff, without limit. No key is ever dropped.
//     A conflict (409) is retried like an error but not logged as one, because it means that
//     the cache was stale. After five failures in a row, a conflict is an error like others. The
//     backoff of a forbidden request (403) goes from 1 to 30 s.
//   - After a write that timed out, the next sync of the key has a longer time for its writes:
//     see [WithLongWrite].
//   - Namespaces take turns, so one namespace with thousands of keys does not delay the
//     others.
//   - A key whose sync asked to be requeued comes after keys that changed. So a sync can defer
//     work that is less urgent than the changes of other objects.
//   - With [WithConsistencyStore], a key waits until the caches contain its last write, or the
//     version that its last write conflicted with. A key that is postponed for longer than a
//     minute counts as failing.
//   - A panic in a sync is an error of that key. It is counted, logged with its stack and
//     retried with backoff, and the loop continues.
//   - A panic in an event handler loses that event, because the keys to enqueue are not known.
//     The event is counted and logged. No other event is lost.
//   - Each failed sync is logged as an error; one that is forbidden or
//     [Logged] is logged at verbosity 2. The logger that package manager sets up throttles
//     repeated errors.
//   - With [WithSources], the loop is paused while an API that its informers read is
//     unavailable. When they have caught up, it starts again with a full resync.
//   - Workers start only after the informers and the loop's own handlers have processed the
//     initial list.
//   - [Loop.Run] returns after all its goroutines have ended, and can then be called again.
//     Each Run has its own queue, handlers and workers. A handler that is added to a synced
//     informer receives all cached objects, so each Run begins with a full resync from memory.
//     New changes come before it.
//
// # Pace
//
// A [Pace] spaces the writes with which a sync function reports the state of an object, so that
// an object that keeps changing costs little, and the last state is always written.
//
// # Observability
//
// An [Observer] gets the [Outcome] of each sync. [Loop.Progress] returns a snapshot at any
// time: which keys run and wait and since when, which fail and why, and the last syncs.
//
// # Scope
//
// The package does not deal with clients, listers, API types, status, Events or leadership. A
// sync function gets a key, and reads objects from its own listers.
//
// # Resync
//
// The loop drops updates that do not change the resourceVersion. So an informer's resync
// period does not reach the sync function. For periodic work, the sync function returns the time after which to call it
// again.
package reconcile

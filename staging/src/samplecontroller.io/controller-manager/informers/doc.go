// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers provides the informers of a process. All controllers share at most one
// watch for each resource. Only informers that enabled controllers request are started. A
// resource that is not available does not affect the others.
//
//	factory := informers.NewFactory()
//	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
//	configMaps := informers.InformerFor[*corev1.ConfigMap](factory, resource, client.CoreV1().ConfigMaps(""))
//	lister := corev1listers.NewConfigMapLister(configMaps.GetIndexer())
//
//	factory.Start(ctx)
//	defer factory.Shutdown()
//	if !factory.WaitUntilSettled(ctx) {
//		return // told to stop
//	}
//	fmt.Println(lister.ConfigMaps("default").Get("settings"))
//
// Create the [Factory], then the controllers, which call [InformerFor], then call
// [Factory.Start]. At the end of the process call [Factory.Shutdown]. Informers live as long
// as the process and are independent of terms of leadership.
//
// # Resources that are not served
//
// While an API is not installed or the permission to read it is missing, its informer waits:
// it retries once a second, after a minute every 10 to 12 seconds, logs that once, and keeps
// its cache. This may be so from the
// start, or an API may be removed and return. [Factory.Served] reports the state and its
// changes. A resource that has returned counts as served when the cache holds its current
// objects. That takes a second or two after the next retry, however often it comes and goes.
//
// Two changes are not noticed at once:
//   - A revoked permission to watch: the API server lets an open watch run to its end, which
//     takes up to ten minutes.
//   - An API that is quickly replaced by another with the same name. It counts as served all
//     the time, and in the cache the objects of the new API replace those of the old one.
//     Their names may be equal, so only the UIDs show the difference.
//
// # Broken resources
//
// The API server may answer a list with an error for one resource only, for example if the
// conversion webhook of its CRD fails, or not at all. Its informer retries once a second and
// keeps the error: see [Resource]. [Factory.WaitUntilSettled] does not wait for it while
// another resource is served. A request without an answer counts as failed after 30 seconds.
// A watch is repeated then, a list after 3 minutes.
//
// While the API server itself cannot be reached, resources that were served still count as
// served. Each informer retries once a second, which is logged once for all informers. The
// age of the watches shows that they are silent: see [Metrics].
//
// # Watches that do not work
//
// If watches end at once, the tenth in a row and each tenth after that causes a list. They
// come once a second, so the cache is at most some 10 seconds behind. A watch that sends
// nothing for 3 minutes, not even a bookmark, is ended, and the objects are listed. Both are
// reported by [Factory.Check], [Factory.CheckWatches], [Factory.Stale] and [Resource], until
// a watch has lasted a second or, after silence, sent something.
//
// # Questions of health
//
// The methods of [Factory] answer different callers:
//
//	method            asked by                   bad answer                              after
//	WaitUntilSettled  manager, before a replica  keeps waiting for a list                30 s without an answer,
//	                  campaigns for the Lease                                            if others are served
//	Served            loops, which then pause    API absent, permission missing,         at once
//	                                             first list not complete
//	Stale             election: may another      as Served, except absent APIs;          at once;
//	                  replica lead better?       request failed; watch silent            silence 3 min
//	Check             /readyz                    not settled; permission or answer       answer 30 s;
//	                                             missing; watch silent or ends at once   silence 3 min
//	CheckWatches      /healthz                   watch silent or ends at once;           silence 3 min;
//	                                             transform or index function panics      10 watches in a row
//	Resources         status pages               all of these, for each resource         at once
//
// # Restored backups
//
// After etcd was restored from a backup, an API server opens watches from versions that it
// has not reached, and never sends what happened up to them. Three rules keep objects that
// are gone from staying in the cache:
//   - Before a watch resumes, a list with limit 1 shows the version of the API server. If
//     that is older, the objects are listed.
//   - A watch that was interrupted for more than 5 seconds does not resume: the objects are
//     listed. So no writes can pass the old version unseen, unless more writes follow the
//     restore within 5 seconds than preceded it since the backup.
//   - Silence: see above.
//
// An API server that was not restarted after the restore serves its own outdated cache. No
// client can see that. Once it is restarted, watches cannot resume, and the objects are listed.
package informers

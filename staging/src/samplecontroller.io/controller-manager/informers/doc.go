// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers makes the informers of a process, so that all controllers share at
// most one watch for each resource, only what enabled controllers asked for is started,
// and a resource that is not there disturbs nobody.
//
//	factory := informers.NewFactory()
//	configMaps := informers.InformerFor[*corev1.ConfigMap](factory, corev1.SchemeGroupVersion.WithResource("configmaps"), client.CoreV1().ConfigMaps(""))
//	lister := corev1listers.NewConfigMapLister(configMaps.GetIndexer())
//
//	factory.Start(ctx)
//	defer factory.Shutdown()
//	if !factory.WaitUntilSettled(ctx) {
//		return // told to end
//	}
//	fmt.Println(lister.ConfigMaps("default").Get("settings"))
//
// Make the [Factory], then the controllers, which call [InformerFor], then call [Factory.Start],
// and at the end of the process [Factory.Shutdown].
// Informers live as long as the process: a term of leadership begins and ends without them
// noticing.
//
// # What is not served
//
// While an API is not installed, or a rule to read it is missing, its informer waits: it
// tries once a second, logs it once, and keeps what it holds. That can be so from the
// start, or an API goes and comes back. [Factory.Served] tells what is so, and when it
// changes. A resource that has come back counts as served when the cache holds what there
// is of it now. A second or two pass until then, however often it comes and goes.
//
// Two things do not show at once:
//   - A right to watch that is taken away: the API server lets a watch that is open run
//     to its end, which takes up to ten minutes.
//   - An API that is replaced quickly by another of the same name. It is served all along,
//     and the objects of the one give way to those of the other in the cache, where they
//     may have the same names. Only their UIDs tell them apart.
//
// # What is broken
//
// The API server may answer a list with an error for one resource alone, for example if
// the conversion webhook of its CRD fails. Its informer tries again with backoff and
// keeps the error: see [Resource]. [Factory.WaitUntilSettled] and [Factory.Check] do not
// wait for it while another resource is served.
//
// While the API server itself cannot be reached, what the informers hold counts as served.
// Each tries again once a second, which is logged once for all. That their watches are
// silent is seen in their age: see [Metrics].
package informers

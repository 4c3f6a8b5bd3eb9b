// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writes observes all writes of a controller: it counts them, records what each sync
// wrote, and knows which permissions are missing. It also lets only one write at a time take
// longer than the write timeout: see reconcile.WithLongWrite.
//
//	config.Wrap(writes.New("foo-controller", nil).Wrap)
//	client, err := corev1client.NewForConfig(config)
//	if err != nil {
//		fmt.Println(err)
//		return
//	}
//	ctx, written := reconcile.WithRecorder(context.Background()) // as a loop does for each sync
//	_ = client.ConfigMaps("default").Delete(ctx, "settings", metav1.DeleteOptions{})
//	for _, write := range written() {
//		fmt.Println(write)
//	}
//
// A controller has one [Transport] under all the clients that it writes with. Reads pass
// through unchanged.
//
// # Metrics
//
// [Metrics] counts for each controller, by RBAC verb and by resource with subresource, such
// as deployments.apps or foos/status.samplecontroller.k8s.io:
//
//	<namespace>_writes_total{controller,verb,resource,result}
//	<namespace>_writes_skipped_total{controller,resource}
//	<namespace>_writes_noop_total{controller,resource}
//
// The results are written, conflict, refused, denied and failed: see [Result]. Every request
// counts, including client retries. A write is skipped if a comparison shows that it is not
// needed, as reported by [Transport.Skip]. [Metrics.Prepare] creates the series of a
// controller at zero.
//
// # Missing permissions
//
// [Transport.Denied] lists the writes that the authorizer of the API server denied within the
// last minute, without a success since. So the program can report the verb and the resource.
// Callers retry on their own: package reconcile with a backoff of up to 30 s.
//
// A denial by admission, such as a quota, a policy or a webhook, depends on the object and is
// not a missing permission. Denied reads are reported by package informers.
//
// # Subresources that are not served
//
// If a CRD does not declare the subresource status, the API server answers a write of it as if
// the object did not exist. A caller that finds that the object exists calls
// [Transport.NotServed], and before each further write [Transport.Paused]. [Transport.Denied]
// lists the subresource, too.
package writes

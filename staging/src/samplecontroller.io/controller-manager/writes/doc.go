// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writes sees all that a controller writes: it counts it, records what each sync
// wrote, and knows which permissions are missing.
//
//	config.Wrap(writes.New("foo-controller", nil, nil).Wrap)
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
// A controller has one [Transport], under all the clients that it writes with. What
// reads passes it untouched.
//
// # Metrics
//
// [Metrics] counts for each controller, by the verb of RBAC and the resource with its
// subresource, such as deployments.apps or foos/status.samplecontroller.k8s.io:
//
//	<namespace>_writes_total{controller,verb,resource,result}
//	<namespace>_writes_skipped_total{controller,resource}
//
// The results are written, conflict, refused, denied and failed: see [Result]. Each request
// is counted, also one that the client sends again by itself. Skipped is what was compared
// and need not be written, as [Transport.Skip] is told. Series exist at zero once a
// controller was prepared: [Metrics.Prepare].
//
// # Missing permissions
//
// [Transport.Denied] lists the writes that the authorizer of the API server denied within the
// last minute, without a success since, so that the program can report the verb and the
// resource. The writer retries by itself: package reconcile with a backoff of up to 30 s.
//
// What admission denies, such as a quota, a policy or a webhook, depends on the object and is
// not a missing permission. Nor is a denied read seen here: informers report it.
package writes

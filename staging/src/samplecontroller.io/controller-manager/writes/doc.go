// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writes sees all that a controller writes: it counts it, tells each sync what
// it wrote, and knows which permissions are missing.
//
//	config.Wrap(writes.New("foo-controller", nil, nil).Wrap)
//	client, err := corev1client.NewForConfig(config)
//	if err != nil {
//		fmt.Println(err)
//		return
//	}
//	ctx, tally := writes.WithTally(context.Background())
//	_ = client.ConfigMaps("default").Delete(ctx, "settings", metav1.DeleteOptions{})
//	for _, line := range tally.Lines() {
//		fmt.Println(line.Verb, line.Resource, line.Result)
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
// The results are written, conflict, refused, denied, withheld and failed: see
// [Result]. Each request is counted, also one that the client sends again by itself.
// Skipped is what was compared and need not be written, as [Transport.Skip] is told.
// Series exist at zero once a controller was prepared: [Metrics.Prepare].
//
// # Missing permissions
//
// When the authorizer of the API server denies a write, more of its kind would be
// denied as well: the same verb on the same resource in the same namespace. For 5 s
// they are answered as the API server would, without asking it; then one is let
// through, which tells whether the permission is still missing. Its first success ends
// that. So a controller that was deprived of a right costs the API server one request
// in 5 s for each namespace, however many objects it has there, and finds out within
// seconds that it was given back: whoever tries again each [RetryAfter] has written
// within 30 s.
//
// What admission denies, such as a quota, a policy or a webhook, depends on the object
// and is no missing permission. Nor is one to read seen here: that shows in informers.
package writes

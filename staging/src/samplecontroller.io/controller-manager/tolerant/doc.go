// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tolerant keeps one undecodable object from blocking all others.
//
//	client, err := tolerant.RESTClientFor(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion, scheme.Scheme)
//	if err != nil {
//		fmt.Println(err)
//		return
//	}
//	configMaps, err := corev1client.New(client).ConfigMaps("").List(context.Background(), metav1.ListOptions{})
//	if err != nil {
//		fmt.Println(err)
//		return
//	}
//	for _, configMap := range configMaps.Items {
//		if err := tolerant.DecodeError(&configMap); err != nil {
//			fmt.Printf("%s cannot be decoded: %v\n", configMap.Name, err)
//			continue
//		}
//		fmt.Println(configMap.Name, configMap.Data)
//	}
//
// A stored object may not fit its Go type, for example because it is older than the
// validation that would reject it today. Generated clients then fail to decode every list
// that contains it and every watch event for it, so the informer never makes progress.
//
// With a client from [ClientFor], or a generated client on [RESTClientFor], only the bad
// object is affected. A placeholder replaces it: an object of the same type that has only
// the metadata. It passes through lists, watches and informers like the object itself.
// [DecodeError] identifies a placeholder and returns what is wrong. When the object is
// fixed, the next event delivers it in full. A controller must check before it acts, because
// a placeholder looks like an object with an empty spec:
//
//	if c.reporter.Report(ctx, foo) {
//		return 0, nil // its spec is unknown
//	}
//
// A [Reporter] does this check in a sync function.
//
// # Decoding
//
// The decoder of the scheme decodes everything. The JSON is decoded a second time only if
// that fails, so objects that can be decoded cost nothing extra. A list with a bad object
// costs about five times as much as one without.
//
// Metadata can always be decoded: the API server omits malformed fields when it reads a custom
// resource from storage. Without a name or resourceVersion, there is no placeholder and the
// decoder returns the error. No API server serves such an object, and omitting it from a list
// would tell an informer that it was deleted.
//
// Formats other than JSON are decoded as usual, which makes no difference for custom
// resources.
package tolerant

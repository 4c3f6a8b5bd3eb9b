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
// A stored object may not fit its Go type, for example because it is older than
// the validation that would refuse it today. Generated clients then fail to
// decode every list that contains it and every watch that brings it, so an
// informer of its kind stands still for ever.
//
// With a client made by [ClientFor], or a generated one on [RESTClientFor], only the bad
// object suffers. A placeholder takes its place: an object of the same type that has the
// metadata and nothing else. It comes and goes through lists, watches and informers as the
// object would, and [DecodeError] tells it from all others and says what is wrong. When
// the object is repaired, the next event brings it whole. A controller must ask before it
// acts, because a placeholder looks like an object with an empty spec:
//
//	if c.reporter.Report(ctx, foo) {
//		return 0, nil // nothing is known of what it wants
//	}
//
// A [Reporter] does so in a sync function, [Metrics] counts.
//
// # What is decoded how
//
// The decoder of the scheme decodes everything. Only where it fails is the JSON decoded a second
// time, so an object that can be decoded costs nothing extra. A list with a bad object costs
// about five times as much as one without.
//
// A metadata field that cannot be decoded is left out of the placeholder, as the API
// server leaves it out of a custom resource that it reads from its storage. What
// remains without a name or resourceVersion is no placeholder, and the error stands:
// no API server serves such an object, and to leave it out of a list would tell
// an informer that it was deleted.
//
// Other formats than JSON are decoded as without this package, which for custom
// resources makes no difference.
package tolerant

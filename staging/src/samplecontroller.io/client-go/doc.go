// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientgo is the root of the clients of the API types in
// [samplecontroller.io/api]. All below it is generated:
//
//   - clientset/versioned: a client for each group, and a fake one for tests;
//   - informers/externalversions and listers: caches fed by a watch, and how
//     they are read;
//   - applyconfiguration: what a server-side apply sends.
package clientgo

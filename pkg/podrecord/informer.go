// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import "k8s.io/client-go/tools/cache"

// Selector is the label selector of the Pods that are watched: every Deployment of
// ours gives its Pods this label. All others cost nothing.
const Selector = "controller"

// Indexers returns the index that an informer of Pods needs, for [ControlledBy]. Its
// transform is [Transform].
func Indexers() cache.Indexers { return cache.Indexers{byController: controllerHash} }

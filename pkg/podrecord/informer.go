// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import "k8s.io/client-go/tools/cache"

// Selector is the label selector of the watched Pods. Every Deployment that we create gives
// its Pods this label. Other Pods cost nothing.
const Selector = "controller"

// Indexers returns the index that [ControlledBy] needs, for an informer of Pods with
// [Transform].
func Indexers() cache.Indexers { return cache.Indexers{byController: controllerHash} }

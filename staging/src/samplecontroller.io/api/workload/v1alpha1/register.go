// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// SchemeGroupVersion names this package for ForKind in the applyconfiguration package of
// samplecontroller.io/client-go. No API server serves such a group.
var SchemeGroupVersion = schema.GroupVersion{Group: "workload", Version: "v1alpha1"}

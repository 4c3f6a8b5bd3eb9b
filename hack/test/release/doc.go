// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release tests the files of a release and the script that builds them.
package release

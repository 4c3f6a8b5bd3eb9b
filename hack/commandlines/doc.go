// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandlines tests how the daemon's command refuses wrong command lines, up to
// where it would start something. FuzzCommandLine looks for one that makes it panic, or
// that it refuses without naming the flag.
package commandlines

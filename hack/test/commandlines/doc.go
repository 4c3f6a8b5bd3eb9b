// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandlines tests how the daemon's command rejects invalid command lines, without
// starting anything. FuzzCommandLine looks for a command line that makes it panic, or that it
// rejects without naming the flag.
package commandlines

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandlines tries the daemon's command with command lines that nobody writes
// in good faith, made at random from its own flags, up to where it would start something.
// Each run tries the same ones.
package commandlines

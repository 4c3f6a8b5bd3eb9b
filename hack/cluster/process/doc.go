// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs child processes that never outlive the process that
// started them, however it ends.
//
// A [Group] owns a directory. A watchdog, one small shell, holds the reading
// end of a pipe whose writing end only this process holds. When this process
// is gone, SIGKILL included, the pipe closes, and the watchdog kills what is
// left of the group and removes its directory. That needs neither Linux's
// parent-death signal, which fires when the starting thread ends rather than
// the process, nor the help of whoever starts the children.
package process

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs child processes that never outlive the process that started them,
// however that process ends.
//
// A [Group] owns a directory. Its watchdog, a small shell, holds the read end of a pipe whose
// write end only this process holds. When this process ends, even by SIGKILL, the pipe closes.
// The watchdog then kills the remaining processes of the group and removes the directory. It
// does not use Linux's parent-death signal, which fires when the starting thread ends rather
// than the process. Nor does it need help from the code that starts the children.
package process

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan records what the controllers of a process would write. Each of its writes is a dry run:
// [OnlyDryRuns] wraps the clients of the whole process. A [Recorder] compares the answers with the stored
// objects. The subcommand plan calls each controller once for each object. A shadow runs beside the leader, and keeps
// the [Difference] list of writes that the leader does not make.
package plan

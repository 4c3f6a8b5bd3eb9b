// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// judgeStatuses runs hack/tools/kstatus on an audit log and returns its output. That program
// has its own module, to keep its requirements out of go.mod.
func judgeStatuses(auditLog string) (string, error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	judge := exec.Command("go", "run", ".", auditLog)
	judge.Dir = filepath.Join(root, "hack", "tools", "kstatus")
	judge.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	out, err := judge.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("checking statuses with kstatus: %w\n%s", err, out)
	}
	return string(out), err
}

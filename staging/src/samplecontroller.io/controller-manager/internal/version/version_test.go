// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
)

func TestVersionOfBuild(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.time", Value: "2026-11-27T10:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	for name, test := range map[string]struct {
		version  string
		settings []debug.BuildSetting
		want     apimachineryversion.Info
	}{
		"tagged":           {"v1.2.3+dirty", vcs, apimachineryversion.Info{GitVersion: "v1.2.3+dirty", GitCommit: "0123abcd", GitTreeState: "dirty", BuildDate: "2026-11-27T10:00:00Z"}},
		"without tag":      {"(devel)", vcs, apimachineryversion.Info{GitVersion: "v0.0.0+0123abcd", GitCommit: "0123abcd", GitTreeState: "dirty", BuildDate: "2026-11-27T10:00:00Z"}},
		"installed module": {"v1.2.3", nil, apimachineryversion.Info{GitVersion: "v1.2.3", GitCommit: "unknown", GitTreeState: "unknown"}},
		"nothing":          {"", nil, apimachineryversion.Info{GitVersion: "v0.0.0+unknown", GitCommit: "unknown", GitTreeState: "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			build := &debug.BuildInfo{Main: debug.Module{Version: test.version}, Settings: test.settings}
			if diff := cmp.Diff(test.want, of(build, apimachineryversion.Info{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version determines the version of the running program.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	componentversion "k8s.io/component-base/version"
)

// Get returns the version that the linker flags of k8s.io/component-base/version set. Without
// them, it returns that of the main module, as the go command recorded it.
func Get() apimachineryversion.Info {
	info := componentversion.Get()
	if build, ok := debug.ReadBuildInfo(); ok && strings.Contains(info.GitVersion, "$Format") {
		return of(build, info)
	}
	return info
}

// UserAgent returns a user agent in client-go's form. It begins with the program's name, not
// with that of the executable, and ends with the purpose of the client, which distinguishes
// clients in the audit log.
func UserAgent(program, purpose string) string {
	v := Get()
	return fmt.Sprintf("%s/%s (%s/%s) %.7s/%s", program, v.GitVersion, runtime.GOOS, runtime.GOARCH, v.GitCommit, purpose)
}

// of returns info with the version in a build.
func of(build *debug.BuildInfo, info apimachineryversion.Info) apimachineryversion.Info {
	info.GitCommit, info.GitTreeState = "unknown", "unknown"
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.GitCommit = setting.Value
		case "vcs.time":
			info.BuildDate = setting.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[setting.Value]
		}
	}
	info.GitVersion = build.Main.Version
	if info.GitVersion == "" || info.GitVersion == "(devel)" { // such as with go run
		info.GitVersion = "v0.0.0+" + info.GitCommit
	}
	return info
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

const changelog = ".github/CHANGELOG.md"

// A version without build metadata, which a tag of an image cannot have.
var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// changes returns the section of a version in the changelog.
func changes(version string) (string, error) {
	if !versionPattern.MatchString(version) {
		return "", fmt.Errorf("invalid version %q: must be like v1.2.3 or v1.2.3-rc.1", version)
	}
	content, err := os.ReadFile(changelog)
	if err != nil {
		return "", err
	}
	heading := "## " + version
	_, after, found := strings.Cut("\n"+string(content), "\n"+heading+"\n")
	section, _, _ := strings.Cut("\n"+after, "\n## ")
	if section = strings.TrimSpace(section); !found || section == "" {
		return "", fmt.Errorf("%s has nothing about %s: add a heading %q at its top, "+
			"and below it what users must do to upgrade and what has changed for them, then commit it", changelog, version, heading)
	}
	return section, nil
}

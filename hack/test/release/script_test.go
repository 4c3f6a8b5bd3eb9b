// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestChangelogDecidesWhatIsReleased checks what the notes of a version are, and that a version
// without notes is refused with a sentence that says what to write.
func TestChangelogDecidesWhatIsReleased(t *testing.T) {
	b := newBuilder(t)
	for version, want := range map[string]string{
		"v1.2.3":      "It is faster.\n",
		"v1.2.2":      "It was slow.\n",
		"v1.2.1":      `add a heading "## v1.2.1" at its top`, // has a heading only
		"v1.2":        "invalid version",
		"1.2.3":       "invalid version",
		"v1.2.3+fips": "invalid version",
		"v1.2.3-rc.1": `.github/CHANGELOG.md has nothing about v1.2.3-rc.1: add a heading "## v1.2.3-rc.1" at its top, and below it what users must do`,
	} {
		output, err := b.run("notes", "-version="+version)
		if wantFailure := !strings.HasPrefix(want, "It "); !strings.Contains(output, want) || (err != nil) != wantFailure {
			t.Errorf("%s: error %v, output %q, want %q", version, err, output, want)
		}
	}
}

// TestScriptsRefuseWrongVariables runs the scripts with variables that they refuse before they
// build or change anything.
func TestScriptsRefuseWrongVariables(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		environment  []string
	}{
		"no version":     {"hack/build-release.sh", "VERSION is missing", nil},
		"unknown FIPS":   {"hack/build-release.sh", "FIPS=yes is invalid: must be 1 or 0", []string{"VERSION=v1.2.3", "FIPS=yes"}},
		"image with tag": {"hack/build-release.sh", "without a tag. The tag is v1.2.3-fips", []string{"VERSION=v1.2.3", "FIPS=1", "IMAGE=registry.example.com:5000/x:v1"}},
		"no notes":       {"hack/build-release.sh", `add a heading "## v9.9.9"`, []string{"VERSION=v9.9.9", "IMAGE=registry.example.com:5000/x"}},
		"no image":       {"hack/deploy.sh", "IMAGE is missing: no registry holds an image of this commit", nil},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command("./" + c.script)
			if c.script == "hack/deploy.sh" {
				command.Args = append(command.Args, "deploy")
			}
			command.Dir = root
			command.Env = append(os.Environ(), append([]string{"VERSION=", "FIPS=", "IMAGE="}, c.environment...)...)
			output, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(output), c.want) {
				t.Errorf("error %v, output %q, want %q", err, output, c.want)
			}
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestLinksLeadSomewhere follows each relative link of each Markdown file to a file and, if
// it has an anchor, to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for _, file := range files(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(withoutCode(read(t, root+file)), -1) {
			if regexp.MustCompile(`^[a-z]+:`).MatchString(match[1]) {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(match[1], "#")
			target := file
			if name != "" {
				target = path.Join(path.Dir(file), name)
			}
			wantTarget(t, file, match[1], target, anchor)
		}
	}
	if links < 100 {
		t.Errorf("%d links found, want at least 100", links)
	}
}

// TestCodeNamesRealPages follows what code, scripts and manifests say of pages, such as
// manifests/docs/operate.md#metrics. These paths begin in the root of the repository.
func TestCodeNamesRealPages(t *testing.T) {
	page := regexp.MustCompile(`\bmanifests/[\w/-]+\.md(?:#[\w-]+)?`)
	mentions := 0
	for _, file := range files(t, ".go", ".yaml", ".sh") {
		for _, match := range page.FindAllString(read(t, root+file), -1) {
			mentions++
			name, anchor, _ := strings.Cut(match, "#")
			wantTarget(t, file, match, name, anchor)
		}
	}
	if mentions < 30 {
		t.Errorf("%d mentions of pages found, want at least 30", mentions)
	}
}

// wantTarget checks that a link of a file leads to a target, and there to a heading.
func wantTarget(t *testing.T, file, link, target, anchor string) {
	t.Helper()
	if _, err := os.Stat(root + target); err != nil {
		t.Errorf("%s: link %s: %v", file, link, err)
		return
	}
	if anchor != "" && !anchors(read(t, root+target))[anchor] {
		t.Errorf("%s: link %s: %s has no such heading", file, link, target)
	}
}

// anchors returns the anchors of all headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(withoutFences(text), -1) {
		anchor := strings.ToLower(strings.TrimSpace(heading[1]))
		anchor = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(anchor, "$1")
		anchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(anchor, "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		unique := anchor
		for i := 1; all[unique]; i++ {
			unique = fmt.Sprintf("%s-%d", anchor, i)
		}
		all[unique] = true
	}
	return all
}

// withoutFences returns Markdown without its code blocks, which may be indented.
func withoutFences(text string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
}

// withoutCode returns Markdown without code in blocks and in lines.
func withoutCode(text string) string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(withoutFences(text), "code")
}

// TestAnchors shows how headings become anchors.
func TestAnchors(t *testing.T) {
	got := anchors("# What a Foo does\n## `--v`, and [more](x.md)\n```sh\n# no heading\n```\n## Twice\n## Twice\n")
	for _, want := range []string{"what-a-foo-does", "--v-and-more", "twice", "twice-1"} {
		if !got[want] {
			t.Errorf("no anchor %q in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("anchors %v, want 4", got)
	}
}

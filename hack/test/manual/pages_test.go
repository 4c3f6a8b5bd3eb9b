// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../../"

// pages are the files that users and operators read, with the most lines that each may have.
var pages = map[string]int{
	"README.md":                 130,
	"manifests/README.md":       200,
	"manifests/monitoring/*.md": 200,
	"manifests/docs/*.md":       200,
	"manifests/docs/3am.md":     70, // about one screen
}

// foreignFlags are those that pages mention of other programs, and of kubectl scm.
var foreignFlags = []string{
	// kubectl
	"all", "all-namespaces", "as", "cascade", "clusterrole", "current", "dry-run", "duration", "field-selector", "flatten", "for",
	"group", "ignore-not-found", "list", "minify", "no-headers", "previous", "prune", "replicas", "role",
	"serviceaccount", "show-managed-fields", "since", "subresource", "type", "user",
	// kubectl scm
	"certificate-authority", "daemon-namespace", "insecure-skip-tls-verify", "log-level-setter", "pod", "port", "server", "status-reader",
	"tail", "timeout", "until", "watch",
	// kube-state-metrics
	"custom-resource-state-config-file",
	// argocd, skopeo, sha256sum, krew, oras
	"raw", "sync-policy", "check", "manifest", "archive", "platform",
}

// TestPagesAreShort checks that a page can be read in one go.
func TestPagesAreShort(t *testing.T) {
	for _, file := range pageFiles(t) {
		most := pages["manifests/docs/*.md"]
		if limit, named := pages[file]; named {
			most = limit
		}
		if lines := strings.Count(read(t, root+file), "\n"); lines > most {
			t.Errorf("%s has %d lines, want at most %d: shorten it, or divide it", file, lines, most)
		}
	}
}

// TestPagesNameRealFlags compares the flags that pages mention with those of the daemon.
func TestPagesNameRealFlags(t *testing.T) {
	known := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(?:-\\w, )?--([\\w-]+)").FindAllStringSubmatch(read(t, root+"manifests/flags.md"), -1) {
		known[match[1]] = true
	}
	if len(known) < 50 {
		t.Errorf("manifests/flags.md has %d flags, want at least 50", len(known))
	}
	foreign := map[string]bool{}
	for _, name := range foreignFlags {
		foreign[name] = false
	}
	mention := regexp.MustCompile(`(?m)(?:^|[^\w-])--([a-z][a-z0-9-]*[a-z0-9]|[a-z])`)
	for _, file := range pageFiles(t) {
		for _, match := range mention.FindAllStringSubmatch(read(t, root+file), -1) {
			name := match[1]
			if _, ok := foreign[name]; ok {
				foreign[name] = true
			} else if !known[name] {
				t.Errorf("%s mentions --%s, which is neither in manifests/flags.md nor a known flag of another program", file, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		if !foreign[name] {
			t.Errorf("no page mentions --%s: remove it from foreignFlags", name)
		}
	}
}

// TestDeprecatedFlagsAreInPolicies checks that the page says when each deprecated flag is removed,
// and names no other.
func TestDeprecatedFlagsAreInPolicies(t *testing.T) {
	const page = "manifests/docs/policies.md"
	names := func(pattern, text string) (all []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
		slices.Sort(all)
		return all
	}
	deprecated := names("(?m)^\\| `--([\\w-]+)[^`]*` \\| [^|]* \\| Deprecated: it has no effect", read(t, root+"manifests/flags.md"))
	_, section, _ := strings.Cut(read(t, root+page), "## Deprecated now\n")
	if listed := names("(?m)^- `--([\\w-]+)`:", section); !slices.Equal(listed, deprecated) {
		t.Errorf("%s lists the deprecated flags %q, want %q", page, listed, deprecated)
	}
}

// TestPagesNameRealTests compares the tests that Markdown files name as evidence with the
// code. An example may define a test of its own.
func TestPagesNameRealTests(t *testing.T) {
	definition := regexp.MustCompile(`(?m)^\s*func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	known := map[string]bool{}
	for _, file := range files(t, "_test.go", ".md") {
		for _, match := range definition.FindAllStringSubmatch(read(t, root+file), -1) {
			known[match[1]] = true
		}
	}
	mentions := 0
	for _, file := range files(t, ".md") {
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(read(t, root+file), -1) {
			mentions++
			if !known[name] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
	if mentions < 30 {
		t.Errorf("pages name %d tests, want at least 30", mentions)
	}
}

// TestPagesNameRealLogLines looks in the code for each log line that a page explains.
func TestPagesNameRealLogLines(t *testing.T) {
	const page = "manifests/docs/troubleshooting.md"
	_, section, _ := strings.Cut(read(t, root+page), "### Log lines\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var code strings.Builder
	for _, file := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(read(t, root+file))
		}
	}
	lines := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(section, -1) {
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			for part := range strings.SplitSeq(quoted[1], " ... ") {
				lines++
				if !strings.Contains(code.String(), part) {
					t.Errorf("%s explains the log line %q, which the code does not write", page, part)
				}
			}
		}
	}
	if lines < 8 {
		t.Errorf("%s explains %d log lines, want at least 8", page, lines)
	}
}

// TestEachFactHasOnePage looks for the rows of tables and the headings that document something,
// so that no two pages contradict each other. [TestReasonsAreDocumented] does it for reasons.
func TestEachFactHasOnePage(t *testing.T) {
	for what, fact := range map[string]struct {
		pattern string // with the name as its group
		page    string
		least   int
	}{
		"flag":     {"(?m)^\\| `(?:-\\w, )?--([\\w-]+)[^`]*` \\|", "manifests/flags.md", 50},
		"metric":   {"(?m)^\\| `([a-z]+(?:_[a-z]+){2,})`", "manifests/metrics.md", 15},
		"endpoint": {"(?m)^\\| `(/[a-z/]+)`(?:,| \\|)", "manifests/docs/operate.md", 6},
		"alert":    {"(?m)^#+ (SampleControllerManager\\w+)$", "manifests/monitoring/runbook.md", 15},
	} {
		seen := map[string]string{}
		for _, file := range append(pageFiles(t), "manifests/flags.md", "manifests/metrics.md") {
			for _, match := range regexp.MustCompile(fact.pattern).FindAllStringSubmatch(read(t, root+file), -1) {
				if former, twice := seen[match[1]]; twice {
					t.Errorf("%s documents the %s %s, which is in %s too", file, what, match[1], former)
				} else if file != fact.page {
					t.Errorf("%s documents the %s %s, which belongs into %s", file, what, match[1], fact.page)
				}
				seen[match[1]] = file
			}
		}
		if len(seen) < fact.least {
			t.Errorf("%d of kind %s are documented, want at least %d", len(seen), what, fact.least)
		}
	}
}

// pageFiles returns the names of all pages.
func pageFiles(t *testing.T) (names []string) {
	t.Helper()
	for pattern := range pages {
		matches, err := filepath.Glob(root + pattern)
		if err != nil || len(matches) == 0 {
			t.Errorf("pages %s: found %q, error %v", pattern, matches, err)
		}
		for _, match := range matches {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(match), root))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// files returns the names of all files of the repository with one of the suffixes.
func files(t *testing.T, suffixes ...string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "_output", "bin", "dist", "testdata"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(file, suffix) }) {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(file), root))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

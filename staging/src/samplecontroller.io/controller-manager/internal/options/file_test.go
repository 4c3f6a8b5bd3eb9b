// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const header = "apiVersion: config.samplecontroller.io/v1alpha1\nkind: ControllerManagerConfiguration\n"

// configFile is a configuration file of a test.
type configFile struct {
	*testing.T
	path string
}

func newConfigFile(t *testing.T, content string) configFile {
	f := configFile{t, filepath.Join(t.TempDir(), "config.yaml")}
	f.write(content)
	return f
}

func (f configFile) write(content string) {
	f.Helper()
	if err := os.WriteFile(f.path, []byte(content), 0o600); err != nil {
		f.Fatal(err)
	}
}

// complete returns the options that the file and the flags give.
func (f configFile) complete(args ...string) *Options {
	f.Helper()
	o := parse(f.T, append(args, "--config="+f.path)...)
	if err := o.Complete(); err != nil {
		f.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		f.Fatal(err)
	}
	return o
}

func TestFileSetsFlags(t *testing.T) {
	f := newConfigFile(t, header+`flags:
  controllers: ["*", bar-controller]
  concurrent-foo-syncs: 7
  leader-elect-lease-duration: 30s
  leader-elect: true
  kube-api-qps: 50
  feature-gates: {ComponentStatusz: true}
  v: 3
`)
	o := f.complete("--kube-api-qps=20", "--concurrent-bar-syncs=4")
	got := fmt.Sprint(o.Generic.Selection.Get(), o.Workers.Of("foo-controller"), o.Workers.Of("bar-controller"),
		o.LeaderElection.LeaseDuration.Duration, o.Client.Connection.QPS, o.Logs.Verbosity,
		o.FeatureGates.Enabled("ComponentStatusz"))
	if want := "[* bar-controller] 7 4 30s 20 3 true"; got != want {
		t.Errorf("settings %s, want %s", got, want)
	}
}

func TestInvalidFiles(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"empty":            {"", `apiVersion "" and kind "": must be config.samplecontroller.io/v1alpha1 and ControllerManagerConfiguration`},
		"other version":    {strings.Replace(header, "v1alpha1", "v9", 1), `apiVersion "config.samplecontroller.io/v9"`},
		"not YAML":         {"a: b: c", "mapping values are not allowed"},
		"two documents":    {header + "---\n" + header, "has more than one document"},
		"unknown field":    {header + "flag: {}\n", `unknown field "flag"`},
		"other case":       {header + "Flags: {v: 1}\n", `unknown field "Flags"`},
		"several lines":    {header + "flags:\n  controllers: |\n    foo\n    bar\n", "flags.controllers: must be one line: write a list as a YAML list"},
		"duplicate":        {header + "flags:\n  v: 1\n  v: 2\n", `key "v" already set`},
		"unknown flag":     {header + "flags: {verbosity: 1}\n", "flags.verbosity: is not a flag"},
		"not for the file": {header + "flags: {config: x}\n", "flags.config: must be given on the command line"},
		"deprecated":       {header + "flags: {min-resync-period: 1h}\n", "flags.min-resync-period: is deprecated"},
		"no value":         {header + "flags: {v: }\n", "flags.v: has no value"},
		"nested":           {header + "flags: {controllers: [[a]]}\n", "flags.controllers: must be a text"},
		"comma in an item": {header + "flags: {controllers: [\"a,b\"]}\n", "an item must not contain a comma"},
		"not a number":     {header + "flags: {concurrent-foo-syncs: many}\n", "flags.concurrent-foo-syncs: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newConfigFile(t, test.content)
			err := parse(t, "--config="+f.path).Complete()
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), f.path) {
				t.Errorf("error %v, want one with %q and the path", err, test.want)
			}
		})
	}
	if err := parse(t, "--config=/does/not/exist").Complete(); err == nil || !strings.HasPrefix(err.Error(), "--config: open /does/not/exist") {
		t.Errorf("error %v, want one about --config", err)
	}
}

func TestFileChangesWhileProcessRuns(t *testing.T) {
	f := newConfigFile(t, header+"flags:\n  concurrent-foo-syncs: 7\n  write-timeout: 5s\n")
	o := f.complete("--concurrent-bar-syncs=4")
	expect := func(content, wantRefused string, wantChanges ...string) {
		t.Helper()
		f.write(content)
		reload := o.File.Poll()
		if reload == nil {
			t.Fatal("no change was found")
		}
		refused := ""
		if reload.Refused != nil {
			refused = reload.Refused.Error()
		}
		diff := cmp.Diff(wantChanges, reload.Changes, cmpopts.EquateEmpty())
		if diff != "" || !strings.Contains(refused, wantRefused) || (refused == "") != (wantRefused == "") {
			t.Errorf("refused %q, want %q; changes (-want +got):\n%s", refused, wantRefused, diff)
		}
		if o.File.Poll() != nil {
			t.Error("the same content was found to have changed")
		}
	}
	if o.File.Poll() != nil {
		t.Error("the first content was found to have changed")
	}
	expect(header+"flags:\n  concurrent-foo-syncs: 8\n  write-timeout: 5s\n", "", "concurrent-foo-syncs: 7 -> 8")
	// One mistake refuses all.
	expect(header+"flags:\n  concurrent-foo-syncs: 9\n  controllers: [none]\n  write-timeout: 5s\n", `flags.controllers: "none" is not a known controller`)
	expect(header+"flags:\n  concurrent-foo-syncs: 9\n  write-timeout: 6s\n", `flags.write-timeout: changing it needs a restart, so nothing of the file is applied: set it back to "5s"`)
	expect(header+"flags:\n  concurrent-foo-syncs: 9\n", "flags.write-timeout: changing it needs a restart")
	expect(header+"flags:\n  namespace: a\n  write-timeout: 5s\n", "flags.namespace: changing it needs a restart, so nothing of the file is applied: set it back to its default by removing it")
	expect("", "invalid configuration file "+f.path+" (1):\n  apiVersion") // and no restart is needed
	if got := o.Workers.Of("foo-controller"); got != 8 {
		t.Errorf("foo-controller has %d workers, want 8, as before the files that were refused", got)
	}
	// A setting that is removed has its default again. Flags of the command line win.
	expect(header+"flags:\n  write-timeout: 5s\n  concurrent-bar-syncs: 9\n  controllers: [bar-controller]\n", "", "concurrent-foo-syncs: 8 -> 5", "controllers: [*] -> [bar-controller]")
	expect(header+"flags:\n  write-timeout: 5s\n", "", "controllers: [bar-controller] -> [*]")
	if got := fmt.Sprint(o.Workers.Of("foo-controller"), o.Workers.Of("bar-controller"), o.Generic.Selection.Get()); got != "5 4 [*]" {
		t.Errorf("settings %s, want 5 4 [*]", got)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if reload := o.File.Poll(); reload == nil || reload.Refused == nil || o.File.Poll() != nil {
		t.Errorf("a file that is gone: %+v, want it refused once", reload)
	}
	expect(header+"flags:\n  write-timeout: 5s\n", "", nil...)
}

// TestRandomFilesAreAppliedOrRefused changes the file 1,000 times.
func TestRandomFilesAreAppliedOrRefused(t *testing.T) {
	f := newConfigFile(t, header)
	o := f.complete()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	values := map[string][]string{
		"controllers":              {"[\"*\"]", "[foo-controller]", "[none]", "[]", "\"*,-bar-controller\""},
		"concurrent-foo-syncs":     {"1", "20", "0", "x", "10001"},
		"concurrent-bar-syncs":     {"2", "30", "-1", "1.5"},
		"v":                        {"0", "4", "-1", "9"},
		"max-deletions-per-minute": {"50", "-1"},
		"paused-controllers":       {"[foo-controller]", "[foo-controller=2026-01-02T15:04:05Z]", "[none]", "[foo-controller=soon]"},
		"write-timeout":            {"5s", "1s"},
		"no-flag":                  {"1"},
	}
	state := func() string {
		return fmt.Sprint(o.Generic.Selection.Get(), o.Workers.Of("foo-controller"), o.Workers.Of("bar-controller"),
			o.Flags().FlagSet("logs").Lookup("v").Value, o.Generic.MaxDeletionsPerMinute, o.Generic.PausedControllers)
	}
	counts := map[bool]int{}
	for i := range 1000 {
		content := fmt.Sprintf("%s# %d\nflags:\n", header, i)
		wanted := map[string]string{"controllers": "[\"*\"]", "concurrent-foo-syncs": "5", "concurrent-bar-syncs": "3", "v": "0",
			"max-deletions-per-minute": "0", "paused-controllers": "[]"}
		for name, all := range values {
			if random.IntN(5) == 0 {
				wanted[name] = all[random.IntN(len(all))]
				content += fmt.Sprintf("  %s: %s\n", name, wanted[name])
			}
		}
		before := state()
		f.write(content)
		reload := o.File.Poll()
		list := "[" + strings.Trim(strings.ReplaceAll(wanted["controllers"], ",", " "), `[]"`) + "]"
		after := fmt.Sprint(list, " ", wanted["concurrent-foo-syncs"], " ", wanted["concurrent-bar-syncs"], " ", wanted["v"],
			" ", wanted["max-deletions-per-minute"], " ", wanted["paused-controllers"])
		switch {
		case reload == nil:
			t.Fatalf("seed %d: no change was found", seed)
		case reload.Refused != nil && state() != before:
			t.Fatalf("seed %d: settings are %s after a refused file, want %s:\n%s", seed, state(), before, content)
		case reload.Refused == nil && state() != after:
			t.Fatalf("seed %d: settings are %s, want %s:\n%s", seed, state(), after, content)
		}
		counts[reload.Refused == nil]++
	}
	if counts[true] < 100 || counts[false] < 100 {
		t.Errorf("seed %d: %d files were applied and %d refused, want many of both", seed, counts[true], counts[false])
	}
}

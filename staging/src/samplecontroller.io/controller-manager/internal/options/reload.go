// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/controller-manager/internal/live"
)

// ConfigFile is the configuration file of a process. It is not safe for concurrent use.
type ConfigFile struct {
	path  string
	flags map[string]*pflag.Flag
	// given are the flags of the command line, which win.
	given sets.Set[string]
	// settings are the values of the file that are in effect.
	settings map[string]string
	// content and unreadable are what the last read returned.
	content    []byte
	unreadable string
}

// Complete reads the configuration file, if there is one, and sets the flags that the command line leaves
// out. Call it once, before [Options.Validate].
func (o *Options) Complete() error {
	if o.Generic.ConfigFile == "" {
		return nil
	}
	f := &ConfigFile{path: o.Generic.ConfigFile, flags: map[string]*pflag.Flag{}, given: sets.New[string]()}
	for _, set := range o.Flags().FlagSets {
		set.VisitAll(func(flag *pflag.Flag) {
			f.flags[flag.Name] = flag
			if flag.Changed {
				f.given.Insert(flag.Name)
			}
		})
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	settings, errs := parseFile(content, f.lookup)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if f.given.Has(name) {
			continue
		}
		if err := f.flags[name].Value.Set(settings[name]); err != nil {
			errs = append(errs, fmt.Errorf("flags.%s: %w", name, err))
		}
	}
	if len(errs) > 0 {
		return &invalidFile{f.path, errs}
	}
	f.content, f.settings, o.File = content, settings, f
	return nil
}

// Sets reports whether the file has a value for the named flag. A nil file has none.
func (f *ConfigFile) Sets(name string) bool {
	if f == nil {
		return false
	}
	_, ok := f.settings[name]
	return ok
}

func (f *ConfigFile) lookup(name string) *pflag.Flag { return f.flags[name] }

// Reload is what came of a new content of the configuration file. It is in effect as a whole, or not at all.
type Reload struct {
	// Changes are the settings that have changed, such as "v: 0 -> 4", and Flags their flags.
	Changes []string
	Flags   []*pflag.Flag
	// Refused is why the content is not in effect, nil if it is.
	Refused error
}

// Poll reads the file again. It returns nil if the file has not changed.
func (f *ConfigFile) Poll() *Reload {
	content, err := os.ReadFile(f.path)
	if err != nil {
		if err.Error() == f.unreadable {
			return nil
		}
		f.content, f.unreadable = nil, err.Error()
		return &Reload{Refused: fmt.Errorf("reading the configuration file: %w", err)}
	}
	if bytes.Equal(content, f.content) && f.unreadable == "" {
		return nil
	}
	f.content, f.unreadable = content, ""
	settings, errs := parseFile(content, f.lookup)
	changed, before, commits := f.changed(settings), map[string]string{}, []func(){}
	if len(errs) > 0 { // what is missing was perhaps not removed
		changed = slices.DeleteFunc(changed, func(name string) bool { _, ok := settings[name]; return !ok })
	}
	for _, name := range changed {
		commit, err := f.prepare(name, settings)
		if err != nil {
			errs = append(errs, named("flags."+name, err)...)
			continue
		}
		before[name], commits = f.flags[name].Value.String(), append(commits, commit)
	}
	if len(errs) > 0 {
		return &Reload{Refused: &invalidFile{f.path, errs}}
	}
	for _, commit := range commits {
		commit()
	}
	f.settings = settings
	reload := &Reload{Changes: []string{}}
	for _, name := range changed {
		flag := f.flags[name]
		reload.Changes = append(reload.Changes, fmt.Sprintf("%s: %s -> %s", name, before[name], flag.Value))
		reload.Flags = append(reload.Flags, flag)
	}
	return reload
}

// changed returns the names of the flags whose value in the file differs from that in effect. Flags of the
// command line are left out.
func (f *ConfigFile) changed(settings map[string]string) []string {
	var names []string
	for name := range sets.KeySet(f.settings).Union(sets.KeySet(settings)) {
		before, was := f.settings[name]
		now, is := settings[name]
		if (was != is || before != now) && !f.given.Has(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// prepare checks the new value of a flag, its default if the file has none.
func (f *ConfigFile) prepare(name string, settings map[string]string) (commit func(), err error) {
	flag := f.flags[name]
	text, ok := settings[name]
	if !ok {
		text = defaultOf(flag)
	}
	setting, isLive := flag.Value.(live.Setting)
	if !isLive {
		return nil, fmt.Errorf("changing it needs a restart, so nothing of the file is applied: set it back to %s, or restart", described(f.settings, name))
	}
	return setting.Prepare(text)
}

// defaultOf returns the default of a flag in the form of the command line.
func defaultOf(flag *pflag.Flag) string {
	if flag.Value.Type() == "strings" {
		return flag.DefValue[1 : len(flag.DefValue)-1] // without brackets
	}
	return flag.DefValue
}

func described(settings map[string]string, name string) string {
	if text, ok := settings[name]; ok {
		return fmt.Sprintf("%q", text)
	}
	return "its default by removing it"
}

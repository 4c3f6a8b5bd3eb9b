// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Report is what a program would change in one pass.
type Report struct {
	// Account is the user as which the plan was made, empty if it is that of the credentials.
	Account string `json:"account,omitempty"`
	// Changes are sorted by controller and object.
	Changes []Change `json:"changes"`
	// FollowingStatuses is the number of statuses that would be written after other changes. They are not predicted.
	FollowingStatuses int `json:"followingStatuses"`
	// NotPlanned are the controllers that cannot be planned.
	NotPlanned []string `json:"notPlanned"`
	// PausedObjects is the number of objects that are paused for at least one controller, which is not planned for them.
	PausedObjects int `json:"pausedObjects"`
	// Unknown are the writes that a webhook refuses as dry runs. Errors are all others that fail, and all else
	// that keeps the plan from being complete.
	Unknown []Problem `json:"unknown"`
	Errors  []Problem `json:"errors"`
}

// Failed reports whether the plan is incomplete.
func (r *Report) Failed() bool { return len(r.Unknown)+len(r.Errors) > 0 }

// WriteJSON writes the report as JSON, with an empty list for each that has nothing.
func (r *Report) WriteJSON(w io.Writer) error {
	complete := *r
	if complete.Changes == nil {
		complete.Changes = []Change{}
	}
	if complete.NotPlanned == nil {
		complete.NotPlanned = []string{}
	}
	if complete.Unknown == nil {
		complete.Unknown = []Problem{}
	}
	if complete.Errors == nil {
		complete.Errors = []Problem{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(complete)
}

// WriteText writes a diff for each change, then problems, then a line that counts the changes. The diffs have colors
// if colored is set.
func (r *Report) WriteText(w io.Writer, colored bool) error {
	var text strings.Builder
	for _, c := range r.Changes {
		text.WriteString(paint(c.diff(), colored) + "\n")
	}
	for _, name := range r.NotPlanned {
		fmt.Fprintf(&text, "Not planned: %s, which has no queue of objects.\n", name)
	}
	if r.PausedObjects > 0 {
		fmt.Fprintf(&text, "Not planned: %s.\n", count(r.PausedObjects, "paused object"))
	}
	for _, p := range r.Unknown {
		fmt.Fprintf(&text, "Unknown: %s\n", oneLine(p.String()))
	}
	for _, p := range r.Errors {
		fmt.Fprintf(&text, "Error: %s\n", oneLine(p.String()))
	}
	if r.Account != "" {
		fmt.Fprintf(&text, "Planned as %s.\n", r.Account)
	}
	text.WriteString(r.summary() + "\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// summary counts the changes.
func (r *Report) summary() string {
	objects, verbs := sets.New[string](), map[string]int{}
	for _, c := range r.Changes {
		resource, _, _ := strings.Cut(c.Resource, "/")
		if c.isStatus() {
			resource = strings.Replace(c.Resource, "/status", "", 1)
		}
		objects.Insert(resource + " " + c.ObjectName())
		verbs[c.Verb]++
	}
	text := fmt.Sprintf("%s would change: %d created, %d patched, %d deleted", count(objects.Len(), "object"), verbs["create"],
		verbs["patch"]+verbs["update"], verbs["delete"]+verbs["deletecollection"])
	if n := verbs[VerbFinalize]; n > 0 {
		text += fmt.Sprintf(", %d finalized", n)
	}
	if len(r.Changes) > 0 {
		text += "; statuses that follow from these are not predicted"
	}
	if n := len(r.Unknown); n > 0 {
		text += fmt.Sprintf("; %d unknown", n)
	}
	if n := len(r.Errors); n > 0 {
		text += "; " + count(n, "error")
	}
	return text + "."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// diff returns the change as a unified diff.
func (c Change) diff() string {
	head := fmt.Sprintf("%s by %s for %s", c, c.Controller, c.For)
	if c.Verb == VerbFinalize {
		return fmt.Sprintf("%s: would run the finalizer %s\n", head, c.Finalizer)
	}
	name := func(text string) string {
		if text == "" {
			return "(none)"
		}
		return c.Resource + " " + c.ObjectName()
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(c.Before), B: lines(c.After), FromFile: name(c.Before), ToFile: name(c.After), Context: 3,
	})
	if err != nil {
		text = err.Error()
	}
	return head + "\n" + cmp.Or(text, "(no fields are shown)\n")
}

// lines returns the lines of a text, with their ends.
func lines(text string) []string { return slices.Collect(strings.Lines(text)) }

const (
	red, green, cyan = "\x1b[31m", "\x1b[32m", "\x1b[36m"
	reset            = "\x1b[0m"
)

// paint colors the lines of a diff, if colored is set. No other character of the text controls a terminal.
func paint(diff string, colored bool) string {
	var text strings.Builder
	for line := range strings.Lines(diff) {
		line = printable(strings.TrimSuffix(line, "\n"))
		color := map[byte]string{'-': red, '+': green, '@': cyan}[(line + " ")[0]]
		if colored && color != "" {
			line = color + line + reset
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}

// printable replaces control characters, which may come from any user's object.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '?'
		}
		return r
	}, line)
}

// oneLine returns a text without line breaks.
func oneLine(text string) string { return printable(strings.Join(strings.Fields(text), " ")) }

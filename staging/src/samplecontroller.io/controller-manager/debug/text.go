// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/reconcile"
)

// width is the number of columns that the pages fit into, unless a name is longer.
const width = 80

// PrintHead prints which process made a report, when, and who leads. Errors of w are ignored, here and in the other
// functions that print.
func PrintHead(w io.Writer, r Report) {
	fmt.Fprintf(w, "%s %s\n", r.Program, r.Version)
	PrintWrapped(w, "", "Leader: "+r.Leader)
	fmt.Fprintf(w, "Time: %s\n", r.Time.UTC().Format(time.RFC3339))
	if r.Namespace != "" {
		fmt.Fprintf(w, "Serves: namespace %s only\n", r.Namespace)
	}
	if r.Process != "" {
		PrintWrapped(w, "", "Process: "+r.Process)
	}
	if r.ConfigRefused != "" {
		PrintWrapped(w, "", "Configuration file refused: "+r.ConfigRefused)
	}
	fmt.Fprintln(w)
}

// PrintReport prints a table for each list of a report, as the page does below its head. Ages are by the clock of the
// reporting process.
func PrintReport(w io.Writer, r Report) {
	seen := said{}
	table := newTable(w, "CONTROLLER", "STATE", "FOR", "RUN", "WAIT", "DELAY", "FAIL", "LAST")
	for _, c := range r.Controllers {
		var running, waiting, delayed, failing int
		var last time.Time
		for _, q := range c.Queues {
			running, waiting, delayed, failing = running+q.Running.Total, waiting+q.Waiting.Total, delayed+q.Delayed.Total,
				failing+q.Failing
			if q.LastSuccess.After(last) {
				last = q.LastSuccess
			}
		}
		table.row(c.Name, c.State, age(r.Time, c.Since), running, waiting, delayed, failing, age(r.Time, last))
		table.note(seen.once(cmp.Or(c.Reason, c.Unhealthy)))
	}
	table.flush()
	printShadow(w, r)
	printResources(w, r, seen)
	for _, c := range r.Controllers {
		for _, q := range c.Queues {
			printQueue(w, r.Time, q, false, seen)
		}
	}
}

// PrintController prints a report of one controller, with its recent syncs. r is the page of that
// controller.
func PrintController(w io.Writer, r Report) {
	seen := said{}
	for _, c := range r.Controllers {
		fmt.Fprintf(w, "%s: %s for %s\n", c.Name, c.State, age(r.Time, c.Since))
		for _, reason := range []string{c.Reason, c.Unhealthy} {
			if reason != "" {
				PrintWrapped(w, "  ", seen.once(reason))
			}
		}
		for _, q := range c.Queues {
			printQueue(w, r.Time, q, true, seen)
		}
	}
}

// PrintExplanation prints what a controller does about one object.
func PrintExplanation(w io.Writer, e Explanation) {
	seen := said{}
	head := fmt.Sprintf("%s: %s is %s", e.Object, e.Controller, e.State)
	if e.Reason != "" {
		head += ": " + e.Reason
	}
	PrintWrapped(w, "", head)
	fmt.Fprintln(w)
	if !e.Found {
		PrintWrapped(w, "", e.Next)
		return
	}
	if len(e.Facts) > 0 {
		table := newTable(w, "", "WANTED", "ACTUAL", "")
		for _, f := range e.Facts {
			differs := ""
			if f.Differs {
				differs = "<- differs"
			}
			table.row(f.Name, dash(f.Wanted), dash(f.Actual), differs)
		}
		table.flush()
		fmt.Fprintln(w)
	}
	PrintWrapped(w, "Next: ", seen.once(e.Next))
	if len(e.Running)+len(e.Waiting)+len(e.Delayed) > 0 {
		fmt.Fprintln(w)
		printKeys(w, e.Time, seen, reconcile.Entries{First: e.Running}, reconcile.Entries{First: e.Waiting},
			reconcile.Entries{First: e.Delayed})
	}
	if len(e.Syncs) > 0 {
		fmt.Fprintln(w, "\nLast syncs:")
		printSyncs(w, e.Time, e.Syncs, seen)
	}
}

// printShadow prints what a shadow would do differently.
func printShadow(w io.Writer, r Report) {
	if r.Shadow == nil {
		return
	}
	fmt.Fprintf(w, "\nWrites that this shadow wants, and that the leader does not make: %d\n", r.Shadow.Total)
	if len(r.Shadow.First) == 0 {
		return
	}
	table := newTable(w, "  OBJECT", "WRITE", "FOR", "CONTROLLER")
	for _, d := range r.Shadow.First {
		table.row("  "+d.Name, d.Verb+" "+d.Resource, age(r.Time, d.Since), d.Controller)
		table.note(line(strings.Join(d.Fields, ", ")))
	}
	if more := r.Shadow.Total - len(r.Shadow.First); more > 0 {
		table.row("  "+fmt.Sprintf("and %d more", more), "", "", "")
	}
	table.flush()
}

func printResources(w io.Writer, r Report, seen said) {
	if len(r.Resources) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := newTable(w, "RESOURCE", "SERVED", "FOR", "OBJECTS", "LAST SIGN")
	for _, x := range r.Resources {
		table.row(x.Name, yesNo(x.Served), age(r.Time, x.Since), x.Objects, ago(r.Time, x.LastSign))
		table.note(seen.once(x.Reason))
	}
	table.flush()
}

// printQueue prints the keys in a queue, if any, and the last failures. If full, it also
// prints all recent syncs.
func printQueue(w io.Writer, now time.Time, q reconcile.Progress, full bool, seen said) {
	if q.Running.Total+q.Waiting.Total+q.Delayed.Total > 0 {
		fmt.Fprintf(w, "\nQueue %s: %d running, %d waiting, %d delayed\n", q.Queue, q.Running.Total, q.Waiting.Total, q.Delayed.Total)
		printKeys(w, now, seen, q.Running, q.Waiting, q.Delayed)
	}
	if len(q.Failures) > 0 {
		fmt.Fprintf(w, "\nLast failures of %s:\n", q.Queue)
		printSyncs(w, now, q.Failures, seen)
	}
	if full && len(q.Recent) > 0 {
		fmt.Fprintf(w, "\nLast syncs of %s:\n", q.Queue)
		printSyncs(w, now, q.Recent, seen)
	}
}

func printKeys(w io.Writer, now time.Time, seen said, running, waiting, delayed reconcile.Entries) {
	table := newTable(w, "  QUEUED", "OBJECT", "TIME", "TRIGGER")
	for i, keys := range []reconcile.Entries{running, waiting, delayed} {
		where := [...]string{"running", "waiting", "delayed"}[i]
		for _, k := range keys.First {
			when := "for " + age(now, k.Time)
			if k.Time.After(now) {
				when = "in " + age(k.Time, now)
			}
			table.row("  "+where, k.Key, when, k.Trigger)
			table.note(failed(k, seen))
		}
		if more := keys.Total - len(keys.First); more > 0 {
			table.row("  "+where, fmt.Sprintf("and %d more", more), "", "")
		}
	}
	table.flush()
}

// failed describes how often a key has failed in a row, and the last error.
func failed(k reconcile.Entry, seen said) string {
	switch {
	case k.Retries == 0:
		return ""
	case k.Retries == 1:
		return "failed once: " + seen.once(k.Error)
	default:
		return fmt.Sprintf("failed %d times: %s", k.Retries, seen.once(k.Error))
	}
}

func printSyncs(w io.Writer, now time.Time, syncs []reconcile.Outcome, seen said) {
	table := newTable(w, "  OBJECT", "BEGAN", "TOOK", "TRIGGER", "RESULT")
	for _, s := range syncs {
		table.row("  "+s.Key, age(now, s.Began)+" ago", s.Duration.Round(10*time.Microsecond), s.Trigger, s.Result)
		var writes []string
		for _, write := range s.Writes {
			writes = append(writes, write.String())
		}
		table.note(strings.Join(writes, ", "))
		if s.Result != reconcile.ResultStale { // it only waits for the cache
			table.note(seen.once(s.Error))
		}
	}
	table.flush()
}

// said are the long texts that a page already has. A fault often shows in several places.
type said map[string]bool

// once returns the text, or where it is on the page if it already is.
func (s said) once(text string) string {
	text = Short(line(text))
	if len(text) > width/2 && s[text] {
		return "as above"
	}
	s[text] = true
	return text
}

// line turns untrusted text into one line that cannot control a terminal.
func line(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}

func age(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	if d := now.Sub(since); d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(now.Sub(since))
}

func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(now, t) + " ago"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/reconcile"
)

// PrintReport prints a table for each list of a report, as the page does. Ages are by the clock of
// the reporting process. Errors of w are ignored, here and in the other functions that print.
func PrintReport(w io.Writer, r Report) {
	printHead(w, r)
	table := newTable(w)
	table.row("CONTROLLER", "STATE", "FOR", "RUNNING", "WAITING", "DELAYED", "FAILING", "LAST SUCCESS", "REASON")
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
		reason := c.Reason
		if c.Unhealthy != "" && c.Reason == "" {
			reason = c.Unhealthy
		}
		table.row(c.Name, c.State, age(r.Time, c.Since), running, waiting, delayed, failing, ago(r.Time, last), reason)
	}
	table.flush()
	printResources(w, r)
	for _, c := range r.Controllers {
		for _, q := range c.Queues {
			printQueue(w, r.Time, q, false)
		}
	}
}

// PrintController prints a report of one controller, with its recent syncs. r is the page of that
// controller.
func PrintController(w io.Writer, r Report) {
	printHead(w, r)
	for _, c := range r.Controllers {
		fmt.Fprintf(w, "%s: %s for %s\n", c.Name, c.State, age(r.Time, c.Since))
		for _, reason := range []string{c.Reason, c.Unhealthy} {
			if reason != "" {
				fmt.Fprintf(w, "  %s\n", line(reason))
			}
		}
		for _, q := range c.Queues {
			printQueue(w, r.Time, q, true)
		}
	}
}

// PrintExplanation prints what a controller does about one object.
func PrintExplanation(w io.Writer, e Explanation) {
	fmt.Fprintf(w, "%s: %s is %s", line(e.Object), e.Controller, e.State)
	if e.Reason != "" {
		fmt.Fprintf(w, ": %s", line(e.Reason))
	}
	fmt.Fprintln(w)
	if !e.Found {
		fmt.Fprintf(w, "\n%s\n", line(e.Next))
		return
	}
	if len(e.Facts) > 0 {
		fmt.Fprintln(w)
		table := newTable(w)
		table.row("", "WANTED", "ACTUAL", "")
		for _, f := range e.Facts {
			differs := ""
			if f.Differs {
				differs = "<- differs"
			}
			table.row(f.Name, dash(f.Wanted), dash(f.Actual), differs)
		}
		table.flush()
	}
	fmt.Fprintf(w, "\nNext: %s\n", line(e.Next))
	if len(e.Running)+len(e.Waiting)+len(e.Delayed) > 0 {
		fmt.Fprintln(w)
		printKeys(w, e.Time, reconcile.Entries{First: e.Running}, reconcile.Entries{First: e.Waiting},
			reconcile.Entries{First: e.Delayed})
	}
	if len(e.Syncs) > 0 {
		fmt.Fprintln(w, "\nLast syncs:")
		printSyncs(w, e.Time, e.Syncs)
	}
}

func printHead(w io.Writer, r Report) {
	if r.Process != "" {
		fmt.Fprintf(w, "Process: %s\n", line(r.Process))
	}
	fmt.Fprintf(w, "Time:    %s\n", r.Time.UTC().Format(time.RFC3339))
	if r.Namespace != "" {
		fmt.Fprintf(w, "Serves:  namespace %s only\n", r.Namespace)
	}
	fmt.Fprintf(w, "Leader:  %s\n\n", line(r.Leader))
}

func printResources(w io.Writer, r Report) {
	if len(r.Resources) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := newTable(w)
	table.row("RESOURCE", "SERVED", "FOR", "OBJECTS", "LAST SIGN", "REASON")
	for _, x := range r.Resources {
		table.row(x.Name, yesNo(x.Served), age(r.Time, x.Since), x.Objects, ago(r.Time, x.LastSign), x.Reason)
	}
	table.flush()
}

// printQueue prints the keys in a queue, if any, and the last failures. If full, it also
// prints all recent syncs.
func printQueue(w io.Writer, now time.Time, q reconcile.Progress, full bool) {
	if q.Running.Total+q.Waiting.Total+q.Delayed.Total > 0 {
		fmt.Fprintf(w, "\nQueue %s: %d running, %d waiting, %d delayed\n", q.Queue, q.Running.Total, q.Waiting.Total, q.Delayed.Total)
		printKeys(w, now, q.Running, q.Waiting, q.Delayed)
	}
	if len(q.Failures) > 0 {
		fmt.Fprintf(w, "\nLast failures of %s:\n", q.Queue)
		printSyncs(w, now, q.Failures)
	}
	if full && len(q.Recent) > 0 {
		fmt.Fprintf(w, "\nLast syncs of %s:\n", q.Queue)
		printSyncs(w, now, q.Recent)
	}
}

func printKeys(w io.Writer, now time.Time, running, waiting, delayed reconcile.Entries) {
	table := newTable(w)
	table.row("  QUEUED", "OBJECT", "TIME", "TRIGGER", "LAST FAILURE")
	for i, keys := range []reconcile.Entries{running, waiting, delayed} {
		where := [...]string{"running", "waiting", "delayed"}[i]
		for _, k := range keys.First {
			when := "for " + age(now, k.Time)
			if k.Time.After(now) {
				when = "in " + age(k.Time, now)
			}
			table.row("  "+where, k.Key, when, k.Trigger, failed(k))
		}
		if more := keys.Total - len(keys.First); more > 0 {
			table.row("  "+where, fmt.Sprintf("and %d more", more), "", "", "")
		}
	}
	table.flush()
}

// failed describes how often a key has failed in a row, and the last error.
func failed(k reconcile.Entry) string {
	switch {
	case k.Retries == 0:
		return ""
	case k.Retries == 1:
		return "failed once: " + k.Error
	default:
		return fmt.Sprintf("failed %d times: %s", k.Retries, k.Error)
	}
}

func printSyncs(w io.Writer, now time.Time, syncs []reconcile.Outcome) {
	table := newTable(w)
	table.row("  OBJECT", "BEGAN", "TOOK", "TRIGGER", "RESULT", "WRITES AND ERRORS")
	for _, s := range syncs {
		var said []string
		for _, write := range s.Writes {
			said = append(said, write.String())
		}
		if s.Error != "" {
			said = append(said, s.Error)
		}
		table.row("  "+s.Key, age(now, s.Began)+" ago", s.Duration.Round(10*time.Microsecond), s.Trigger, s.Result,
			strings.Join(said, ", "))
	}
	table.flush()
}

// table aligns columns.
type table struct {
	w      io.Writer
	buffer bytes.Buffer
	*tabwriter.Writer
}

func newTable(w io.Writer) *table {
	t := &table{w: w}
	t.Writer = tabwriter.NewWriter(&t.buffer, 0, 0, 3, ' ', 0)
	return t
}

// row adds a row.
func (t *table) row(cells ...any) {
	for i, cell := range cells {
		text := fmt.Sprint(cell)
		if i == 0 && strings.HasPrefix(text, "  ") {
			fmt.Fprint(t, "  ")
		}
		fmt.Fprint(t, line(text), "\t")
	}
	fmt.Fprintln(t)
}

// flush prints the table, without spaces at the ends of its lines.
func (t *table) flush() {
	_ = t.Flush() // into memory
	for row := range strings.Lines(t.buffer.String()) {
		fmt.Fprintln(t.w, strings.TrimRight(row, " \n"))
	}
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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logwriter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pipe is the destination of a log. A write waits for a reader, takes a while, and may fail.
type pipe struct {
	reader  chan struct{} // closed when a reader comes; nil if there is one
	takes   time.Duration
	failure error
	content bytes.Buffer
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.reader != nil {
		<-p.reader
	}
	time.Sleep(p.takes)
	if p.failure != nil {
		return 0, p.failure
	}
	return p.content.Write(b)
}

// newWriter returns a writer to the pipe whose reports are written to the writer itself.
func newWriter(out io.Writer) *Writer {
	var w *Writer
	w = New(out, func(lost uint64) { fmt.Fprintf(w, "lost %d\n", lost) })
	return w
}

func TestWriteDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe{reader: make(chan struct{})}
		w := newWriter(&p)
		begin, written := time.Now(), 0
		line := strings.Repeat("x", 1023) + "\n"
		fmt.Fprint(w, line)
		synctest.Wait() // the first line is being written
		for range 3000 {
			n, err := fmt.Fprint(w, line)
			if err != nil {
				t.Fatal(err)
			}
			written += n
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("writing took %v, want no time", took)
		}
		if written != 3000*len(line) {
			t.Errorf("%d bytes were accepted, want %d", written, 3000*len(line))
		}
		const lost = 3000 - maxWaiting/1024
		if got := w.Dropped(); got != lost {
			t.Errorf("%d lines were dropped, want %d", got, lost)
		}
		close(p.reader)
		synctest.Wait()
		fmt.Fprint(w, "after\n")
		synctest.Wait()
		want := fmt.Sprintf("lost %d\nafter\n", lost)
		before, after := p.content.String()[:1024*1025], p.content.String()[1024*1025:]
		if diff := cmp.Diff(want, after); diff != "" || strings.Count(before, line) != 1025 {
			t.Errorf("%d whole lines, then (-want +got):\n%s", strings.Count(before, line), diff)
		}
	})
}

// TestReportFollowsGap fills the buffer again before its previous content is written.
func TestReportFollowsGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe{takes: time.Second}
		w := newWriter(&p)
		fmt.Fprint(w, "first\n")
		synctest.Wait()
		line := strings.Repeat("x", maxWaiting*3/4) + "\n"
		for range 3 { // seconds
			for range 3 { // only one fits
				fmt.Fprint(w, line)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		w.Flush()
		want := "first\n#lost 2\n#lost 2\n#lost 2\n"
		if diff := cmp.Diff(want, strings.ReplaceAll(p.content.String(), line, "#")); diff != "" {
			t.Errorf("unexpected log, # is the long line (-want +got):\n%s", diff)
		}
		if got := w.Dropped(); got != 6 {
			t.Errorf("%d lines were dropped, want 6", got)
		}
	})
}

// TestBrokenPipeIsRetried uses a named pipe whose reader leaves and returns.
func TestBrokenPipeIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe{failure: errors.New("broken pipe")}
		w := newWriter(&p)
		for range 3 {
			fmt.Fprint(w, "unread\n")
			synctest.Wait()
		}
		p.failure = nil
		fmt.Fprint(w, "read\n")
		synctest.Wait()
		if diff := cmp.Diff("read\nlost 3\n", p.content.String()); diff != "" {
			t.Errorf("unexpected log (-want +got):\n%s", diff)
		}
	})
}

func TestFlush(t *testing.T) {
	tests := map[string]struct {
		takes time.Duration // duration of a write
		want  time.Duration // until Flush returns
	}{
		"fast reader": {},
		"slow reader": {takes: time.Second, want: time.Second},
		"no reader":   {takes: time.Hour, want: gracePeriod},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipe{takes: test.takes}
				w := newWriter(&p)
				defer time.Sleep(10 * time.Hour) // until all is written
				begin := time.Now()
				w.Flush() // nothing
				fmt.Fprint(w, "last\n")
				w.Flush()
				if took := time.Since(begin); took != test.want {
					t.Errorf("took %v, want %v", took, test.want)
				}
				if want := "last\n"; test.takes < gracePeriod && p.content.String() != want {
					t.Errorf("the log is %q, want %q", p.content.String(), want)
				}
			})
		})
	}
}

// TestFlushWritesReport loses lines when the process is about to end.
func TestFlushWritesReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe{takes: 900 * time.Millisecond}
		w := newWriter(&p)
		fmt.Fprint(w, "first\n")
		synctest.Wait()
		fmt.Fprint(w, strings.Repeat("x", maxWaiting))
		fmt.Fprint(w, "dropped\n")
		begin := time.Now()
		w.Flush()
		if took := time.Since(begin); took != 3*p.takes || !strings.HasSuffix(p.content.String(), "xlost 1\n") {
			t.Errorf("after %v the log ends with %q, want the report after 2.7s", took, p.content.String()[p.content.Len()-9:])
		}
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// tick is how often a stream looks for changes. Pages that read something of their own do so at reportInterval.
	tick = time.Second
	// slow is how long a browser may take to receive a message.
	slow = 20 * time.Second
)

// stream sends the changes of one page to one browser.
type stream struct {
	s       *Server
	p       *page
	out     *http.ResponseController
	w       http.ResponseWriter
	sent    map[string]string // the hash of each fragment
	sampled time.Time         // the last sample that was sent
	id      int
}

// serveStream serves Server-Sent Events: the fragments of a page when they change, and the samples of its plots.
func (s *Server) serveStream(resolve func(*http.Request) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := resolve(r)
		if err != nil {
			http.Error(w, "Not found: "+err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		st := &stream{s: s, p: p, w: w, out: http.NewResponseController(w), sent: map[string]string{}}
		// A browser that comes back shows what it last got, and not what it got first.
		if r.Header.Get("Last-Event-ID") == "" {
			st.saw(r.URL.Query().Get("seen"))
		}
		// The first message may take a while, and a browser without an answer does not connect again.
		if st.out.Flush() != nil {
			return
		}
		interval := tick
		if p.refresh != nil {
			interval = reportInterval
		}
		for {
			if st.send(r) != nil || !wait(r.Context(), interval) {
				return // the browser has gone
			}
		}
	}
}

// saw takes the hashes of the fragments that the page had.
func (st *stream) saw(hashes string) {
	seen := strings.Split(hashes, ".")
	names := []string{"verdict"}
	for _, name := range st.p.Parts {
		if name != "plots" && name != "form" {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if i < len(seen) {
			st.sent[name] = seen[i]
		}
	}
}

// send sends what has changed.
func (st *stream) send(r *http.Request) error {
	now := time.Now()
	fragments, err := st.s.render(r.Context(), st.p, now)
	if err != nil {
		return err
	}
	var changed bytes.Buffer
	for _, f := range fragments {
		if sum := hash(f.content); st.sent[f.name] != sum {
			st.sent[f.name] = sum
			fmt.Fprintf(&changed, "<hx-partial id=%q hx-swap=\"innerMorph\">%s</hx-partial>\n", f.name, withAges(f.content, now))
		}
	}
	if err := st.out.SetWriteDeadline(now.Add(slow)); err != nil {
		return err
	}
	if changed.Len() > 0 {
		if err := st.message("", changed.String()); err != nil {
			return err
		}
	}
	if samples := st.s.d.history.since(st.sampled); len(st.p.Plots) > 0 && len(samples) > 0 {
		content, err := json.Marshal(plot(samples, st.p.Plots))
		if err != nil {
			return err
		}
		st.sampled = samples[len(samples)-1].at
		if err := st.message("samples", string(content)); err != nil {
			return err
		}
	}
	return st.out.Flush()
}

// message sends one message.
func (st *stream) message(event, data string) error {
	st.id++
	var out bytes.Buffer
	fmt.Fprintf(&out, "id: %d\n", st.id)
	if event != "" {
		fmt.Fprintf(&out, "event: %s\n", event)
	}
	// A carriage return in the message of an object would end the line, too.
	for line := range strings.Lines(strings.ReplaceAll(strings.TrimSuffix(data, "\n"), "\r", " ")) {
		fmt.Fprintf(&out, "data: %s\n", strings.TrimSuffix(line, "\n"))
	}
	out.WriteByte('\n')
	_, err := st.w.Write(out.Bytes())
	return err
}

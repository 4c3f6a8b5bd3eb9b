// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// read fills a dashboard once from a fake source, and returns a server of it that does not listen.
func read(t *testing.T, f *fake) *Server {
	t.Helper()
	var d *Dashboard
	synctest.Test(t, func(t *testing.T) {
		d = New(f, Options{Timeout: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx)
		}()
		synctest.Wait()
		cancel()
		<-done
	})
	// The time in there is not that of the test.
	now := time.Now()
	for _, at := range []*time.Time{&d.opened, &d.lead.Read, &d.handovers.Read, &d.pods.Read, &d.report.Read} {
		if !at.IsZero() {
			*at = now
		}
	}
	s, err := Listen(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.listener.Close() })
	return s
}

// get requests a path below the token.
func get(t *testing.T, s *Server, path string) *httptest.ResponseRecorder {
	t.Helper()
	return request(s, http.MethodGet, s.listener.Addr().String(), "/"+s.token+"/"+path)
}

func request(s *Server, method, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w
}

// page returns the HTML of a page that must exist.
func pageOf(t *testing.T, s *Server, path string) string {
	t.Helper()
	w := get(t, s, path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// links are what a browser loads by itself.
var links = regexp.MustCompile(`(?:<link rel="stylesheet" href|src|hx-sse:connect)="/[A-Z0-9]+/((?:assets|live)[^"]*)"`)

func TestAccess(t *testing.T) {
	s := read(t, newFake())
	_, port, _ := strings.Cut(s.listener.Addr().String(), ":")
	asset := "/" + s.token + "/" + links.FindStringSubmatch(pageOf(t, s, ""))[1]
	for _, test := range []struct {
		method, host, path string
		want               int
		cache              string
	}{
		{"GET", "127.0.0.1:" + port, "/" + s.token + "/", 200, "no-store"},
		{"GET", "localhost:" + port, "/" + s.token + "/objects", 200, "no-store"},
		{"GET", "[::1]:" + port, asset, 200, "private, max-age=31536000, immutable"},
		{"GET", "[::1]:" + port, asset + "x", 404, "no-store"},
		{"GET", "127.0.0.1", "/" + s.token + "/", 421, "no-store"},
		{"GET", "127.0.0.1:1", "/" + s.token + "/", 421, "no-store"},
		{"GET", "rebound.example.com:" + port, "/" + s.token + "/", 421, "no-store"},
		{"GET", "127.0.0.1:" + port, "/", 404, "no-store"},
		{"GET", "127.0.0.1:" + port, "/" + s.token[1:] + "/", 404, "no-store"},
		{"GET", "127.0.0.1:" + port, "//" + s.token + "/", 404, "no-store"},
		{"GET", "127.0.0.1:" + port, "/" + s.token + "/controller/no", 404, "no-store"},
		{"GET", "127.0.0.1:" + port, "/" + s.token + "/object/bar/a/b", 404, "no-store"},
		{"GET", "127.0.0.1:" + port, "/" + s.token + "/assets/README.md", 404, "no-store"},
		{"POST", "127.0.0.1:" + port, "/" + s.token + "/", 405, "no-store"},
		{"HEAD", "127.0.0.1:" + port, "/" + s.token + "/live/", 405, "no-store"},
	} {
		w := request(s, test.method, test.host, test.path)
		if w.Code != test.want {
			t.Errorf("%s %s at %s: %d, want %d", test.method, test.path, test.host, w.Code, test.want)
		}
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cache-Control": test.cache} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", test.method, test.path, name, got, want)
			}
		}
	}
	if strings.Contains(policy, "unsafe") || len(s.token) < 26 { // of 32 letters each
		t.Errorf("policy %q, token of %d letters", policy, len(s.token))
	}
}

func TestAssets(t *testing.T) {
	sums, err := os.ReadFile("assets/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile("assets/" + name)
		if got := sha256.Sum256(content); err != nil || hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s does not have the hash in SHA256SUMS: %v", name, err)
		}
	}
	files, err := os.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]int64{"dashboard.css": 4000, "dashboard.js": 3000, "README.md": 2000, "SHA256SUMS": 2000}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		limit, ours := limits[file.Name()]
		if ours && info.Size() > limit {
			t.Errorf("%s has %d bytes, want at most %d", file.Name(), info.Size(), limit)
		}
		if !ours && !strings.Contains(string(sums), "  "+file.Name()+"\n") {
			t.Errorf("%s is not in SHA256SUMS", file.Name())
		}
	}
}

// TestFirstScreen measures what a browser loads, with a history of 15 minutes.
func TestFirstScreen(t *testing.T) {
	f := newFake()
	for i := range 10_000 {
		f.objects = append(f.objects, stalled(fmt.Sprintf("a-foo-with-a-name-%d", i), time.Now().Add(-time.Hour)))
	}
	s := read(t, f)
	s.d.history.samples = nil
	report := f.report
	for at := time.Now().Add(-remembered); at.Before(time.Now()); at = at.Add(reportInterval) {
		report.Time = at
		report.Controllers = append(report.Controllers[:0:0], report.Controllers...)
		for i := range report.Controllers {
			q := report.Controllers[i].Queues[0]
			q.Syncs, q.Failed, q.Waiting.Total = q.Syncs+137, q.Failed+21, 150
			report.Controllers[i].Queues = append(report.Controllers[i].Queues[:0:0], q)
		}
		s.d.history.add(at, &report)
	}
	page := pageOf(t, s, "")
	requests, bytes := 1, len(page)
	for _, link := range links.FindAllStringSubmatch(page, -1) {
		requests++
		if strings.HasPrefix(link[1], "live") {
			sent := messages(t, s, strings.ReplaceAll(link[1], "&amp;", "&"), "", 2)
			bytes += len(sent[0]) + len(sent[1])
		} else {
			bytes += get(t, s, link[1]).Body.Len()
		}
	}
	t.Logf("%d requests, %d bytes; the page itself has %d bytes", requests, bytes, len(page))
	if requests > 8 || bytes > 150_000 {
		t.Errorf("the first screen takes %d requests and %d bytes, want at most 8 and 150000", requests, bytes)
	}
	if rows := strings.Count(page, `<a id="object/`); rows != 50 || !strings.Contains(page, "<strong>9950 more</strong>") {
		t.Errorf("the page has %d rows, want 50 and that there are 9950 more", rows)
	}
}

// messages returns the first messages of a stream.
func messages(t *testing.T, s *Server, path, last string, n int) []string {
	t.Helper()
	server := httptest.NewUnstartedServer(s.handler())
	server.Listener = s.listener
	server.Start()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/"+s.token+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", last)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var all []string
	message, lines := "", bufio.NewReader(response.Body)
	for len(all) < n {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if message += line; line == "\n" || err != nil {
			all, message = append(all, message), ""
		}
	}
	return all
}

// TestStream checks that a stream sends what has changed, and all of it to a browser that comes back.
func TestStream(t *testing.T) {
	f := newFake()
	s := read(t, f)
	page := pageOf(t, s, "")
	link := strings.ReplaceAll(links.FindAllStringSubmatch(page, -1)[6][1], "&amp;", "&")
	s.d.kinds[0].watcher().Changed(stalled("new", time.Now()))
	sent := messages(t, s, link, "", 2)
	for want, is := range map[string]bool{`<hx-partial id="verdict"`: true, `<hx-partial id="broken"`: true, "Foo shop/new": true, `id="replicas"`: false} {
		if strings.Contains(sent[0], want) != is {
			t.Errorf("the first message has %q: %v, want %v:\n%s", want, !is, is, sent[0])
		}
	}
	if !strings.HasPrefix(sent[1], "id: 2\nevent: samples\ndata: {\"t\":[") {
		t.Errorf("the second message is\n%s", sent[1])
	}
}

func TestStreamAfterReconnect(t *testing.T) {
	s := read(t, newFake())
	link := strings.ReplaceAll(links.FindAllStringSubmatch(pageOf(t, s, ""), -1)[6][1], "&amp;", "&")
	if sent := messages(t, s, link, "7", 1); strings.Count(sent[0], "<hx-partial ") != 5 {
		t.Errorf("a browser that comes back gets\n%s", sent[0])
	}
}

// TestUntrustedText puts HTML and line ends of the stream into all texts that objects and the daemon have.
func TestUntrustedText(t *testing.T) {
	const evil = "<script>alert(1)</script>\" onload=x '\r\revent: samples\rdata: x"
	f := newFake()
	o := cluster.Object{Kind: "Foo", Namespace: "a", Name: evil, Condition: "Stalled", Reason: evil, Message: evil, Next: evil, Pods: evil}
	f.objects, f.lead.Pod, f.pods[0].Problem, f.pods[0].Name = []cluster.Object{o}, evil, evil, evil
	f.events = []cluster.Event{{Type: evil, Reason: evil, Message: evil}}
	f.report.Controllers[0].Reason, f.explained.Next, f.explained.Facts[0].Wanted = evil, evil, evil
	f.handovers[0].Process = evil
	f.failures["pods"] = errors.New(evil)
	s := read(t, f)
	for _, path := range []string{"", "objects?q=" + strings.ReplaceAll(evil[:25], " ", "+"), "controller/foo-controller", "object/foo/a/%3Cscript%3Ealert%281%29"} {
		body := pageOf(t, s, path)
		if strings.Contains(body, "<script>") || strings.Contains(body, "\" onload") {
			t.Errorf("%s does not escape the text:\n%s", path, body)
		}
	}
	if sent := messages(t, s, "live/", "1", 1); strings.Contains(sent[0], "<script>") || strings.Contains(sent[0], "\r") {
		t.Errorf("the stream does not escape the text: %q", sent[0])
	}
}

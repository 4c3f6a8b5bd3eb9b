// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// StartDaemon starts a replica and waits until it is ready. At the end of the test it must stop with 0.
func StartDaemon(t *testing.T, flags ...string) *Replica {
	t.Helper()
	return StartUnready(t, flags...).Ready()
}

// StartUnready is [StartDaemon] for a replica that may not become ready.
func StartUnready(t *testing.T, flags ...string) *Replica {
	t.Helper()
	r := StartReplica(t, flags...)
	t.Cleanup(func() {
		_ = r.Cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-r.Done:
		case <-time.After(2 * time.Minute):
			t.Error("the daemon did not end within 2 min")
			return
		}
		if code := r.Cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the daemon ended with %d", code)
		}
	})
	return r
}

// LogAbout returns the lines of the log that contain all of the texts.
func (r *Replica) LogAbout(texts ...string) (lines []string) {
	for line := range strings.Lines(r.Log.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// GetPage requests a path until the response has the wanted code and contains all of the texts, and returns the body.
// A new role binding takes a moment to become effective.
func (r *Replica) GetPage(path, token string, want int, texts ...string) (body string) {
	r.T.Helper()
	clustertest.WaitUntil(r.T, fmt.Sprintf("%s answers %d %q", path, want, texts), func(ctx context.Context) error {
		code, got, err := r.GetAs(ctx, token, path)
		lacks := func(text string) bool { return !strings.Contains(got, text) }
		if body = got; err == nil && (code != want || slices.ContainsFunc(texts, lacks)) {
			err = fmt.Errorf("code %d: %.2000s", code, got)
		}
		return err
	})
	return body
}

// Value returns the value of a series.
func (r *Replica) Value(series string) float64 {
	r.T.Helper()
	_, value, found := strings.Cut("\n"+r.GetPage("/metrics", r.Admin(), http.StatusOK), "\n"+series+" ")
	value, _, _ = strings.Cut(value, "\n")
	number, err := strconv.ParseFloat(value, 64)
	if !found || err != nil {
		r.T.Fatalf("no series %s: %v", series, err)
	}
	return number
}

// Names returns the names of our controllers and of all others, sorted.
func Names() []string {
	all := sets.New("foo-controller", "icecream-controller", "status-aggregator-controller")
	for _, d := range app.Program().Controllers {
		all.Insert(d.Name)
	}
	return sets.List(all)
}

// Viewer reads the status of a daemon.
type Viewer struct {
	T      *testing.T
	Server *Replica
	Token  string
}

// Page returns a page as text and as JSON, and decodes the JSON.
func (v Viewer) Page(path string, into any) string {
	v.T.Helper()
	body := v.Server.GetPage(debug.Path+path+"?format=json", v.Token, http.StatusOK)
	if err := json.Unmarshal([]byte(body), into); err != nil {
		v.T.Fatal(err)
	}
	return v.Server.GetPage(debug.Path+path, v.Token, http.StatusOK)
}

// NewViewer returns a viewer with the rights of an operator.
func NewViewer(t *testing.T, server *Replica) Viewer {
	t.Helper()
	return Viewer{t, server, TokenWith(t, NewNamespace(t), StatusReader)}
}

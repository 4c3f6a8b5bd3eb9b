// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"samplecontroller.io/sample-controller-manager/hack/monitoring"
)

// picture is where to draw the dashboard. That takes minutes, because there is to be
// something to see: go test ./hack/e2e -run TestMonitoring -picture=$PWD/manifests/monitoring/dashboard.svg
var picture = flag.String("picture", "", "file to draw the dashboard into, after a longer run of TestMonitoring")

// rateScrapes is over how many scrapes rates are taken.
const rateScrapes = 5

func rateWindow() time.Duration { return rateScrapes * scrapeInterval() }

// unhurried are durations by which no machine is too busy to keep the lead. What is released
// is taken at once nevertheless.
var unhurried = []string{"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=2s"}

// observation is three replicas under the eyes of a Prometheus.
type observation struct {
	*prometheus
	began    time.Time
	replicas map[string]*replica // by what takes the place of the Pod's name
	marks    []monitoring.Mark
}

// TestMonitoring has a real Prometheus do what manifests/monitoring says: nothing is alerted
// of while one replica works and two stand by, nor by a hand-over; each query of the
// dashboard and of the alerts finds data; and a controller in trouble is alerted of.
func TestMonitoring(t *testing.T) {
	freeLease(t)
	t.Setenv("GOMEMLIMIT", "460MiB") // as in manifests/base
	o := startObservation(t)
	ns := newNamespace(t)
	stopLoad := scaleAlways(t, ns)
	o.pass()
	o.waitQuiet()

	leader := string(o.waitFound(`leader_election_master_status == 1`, 1)[0].Metric["pod"])
	o.mark(leader + " leads, is told to end, and is started again")
	o.replicas[leader].stop()
	o.waitFound(fmt.Sprintf(`leader_election_master_status{pod!=%q} == 1`, leader), 1)
	o.start(leader)
	o.pass()
	o.waitQuiet()
	if fired := o.mustQuery(`max_over_time(ALERTS{alertstate="firing"}[1d])`); len(fired) > 0 {
		t.Errorf("without any trouble there were alerts: %v", fired)
	}
	o.wantData()

	o.makeTrouble(ns)
	if *picture != "" {
		o.pass()
	}
	stopLoad()
	o.draw()
	t.Logf("%v series of a replica are scraped", o.mustQuery(`max(scrape_samples_scraped)`)[0].Value)
}

func startObservation(t *testing.T) *observation {
	t.Helper()
	m := installMonitoring(t)
	o := &observation{replicas: map[string]*replica{}}
	var targets []monitoring.Target
	for i := range 3 {
		pod := fmt.Sprintf("replica-%d", i+1)
		r := startReplica(t, unhurried...)
		o.replicas[pod] = r
		targets = append(targets, monitoring.Target{Address: strings.TrimPrefix(r.url, "https://"), Pod: pod})
	}
	for _, r := range o.replicas {
		r.ready()
	}
	o.prometheus = startPrometheus(t, m, targets...)
	o.waitFound(`up == 1`, 3)
	o.began = time.Now()
	return o
}

// start starts a replica again that has ended, where it was.
func (o *observation) start(pod string) {
	o.t.Helper()
	r := o.replicas[pod]
	r.program = startProgram(o.t, r.cmd.Path, r.cmd.Args[1:]...)
	r.ready()
	o.waitFound(`up == 1`, 3)
}

// pass lets time pass: for a few scrapes, or for as long as can be seen in a picture.
func (o *observation) pass() {
	o.t.Helper()
	if *picture == "" {
		o.waitScraped(rateScrapes)
	} else {
		o.waitScraped(15)
	}
}

// waitQuiet waits until no alert is even on the way to fire, but for those by which a busy
// machine tells the truth about itself.
func (o *observation) waitQuiet() {
	o.t.Helper()
	o.waitFound(`ALERTS{alertname!~"SampleControllerManager(UsersWait|WorkWaits)"}`, 0)
}

func (o *observation) mark(text string) {
	o.marks = append(o.marks, monitoring.Mark{Time: time.Now(), Text: text})
}

// scaleAlways makes objects, and changes them until it is told to stop.
func scaleAlways(t *testing.T, ns string) (stop func()) {
	t.Helper()
	const objects = 20
	ctx, cancel := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	for _, k := range kinds {
		changing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", k.resource, i%objects)
				if i < objects {
					_, _ = k.tryDeclare(ctx, ns, name, naming(name)) // only the load matters
				} else {
					_ = k.tryPatch(ctx, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+i/objects%3))
				}
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		cancel()
		changing.Wait()
	}
}

// wantData wants each query of the dashboard, and whatever the alerts look at, to find
// something, with the labels that are shown. Only kube-state-metrics is none of ours.
func (o *observation) wantData() {
	o.t.Helper()
	queries := 0
	for _, panel := range o.config.Manifests.Dashboard.Panels {
		queries += len(panel.Targets)
		if _, err := panel.Lines(o.t.Context(), o.api, rateWindow(), o.over()); err != nil {
			o.t.Error(err)
		}
	}
	selectors := 0
	for _, alert := range o.config.Manifests.Alerts.All() {
		labels := map[string]bool{}
		for _, selector := range monitoring.Selectors(alert.Expr) {
			if strings.HasPrefix(selector, "kube_") {
				continue
			}
			selectors++
			found := o.mustQuery(selector)
			if len(found) == 0 {
				o.t.Errorf("%s looks at %s, and there is no such thing", alert.Alert, selector)
			}
			for _, series := range found {
				for label := range series.Metric {
					labels[string(label)] = true
				}
			}
		}
		for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(fmt.Sprint(alert.Annotations), -1) {
			if !labels[label[1]] {
				o.t.Errorf("%s tells the label %s, which is not there", alert.Alert, label[1])
			}
		}
	}
	if queries < 20 || selectors < 20 {
		o.t.Errorf("%d queries and %d selectors were looked at: are these all?", queries, selectors)
	}
	o.t.Logf("%d queries of the dashboard and %d selectors of the alerts have data", queries, selectors)
}

// makeTrouble takes a permission from a controller, and waits until that is alerted of,
// which takes less long than the manifests say. Then it gives the permission back.
func (o *observation) makeTrouble(ns string) {
	o.t.Helper()
	for _, alert := range o.config.Manifests.Alerts.All() {
		if alert.For != "" {
			alert.For = "1s"
		}
	}
	if err := o.config.WriteAlerts(o.dir); err != nil {
		o.t.Fatal(err)
	}
	o.signal(syscall.SIGHUP)
	o.mark("the right to write the status of Icecreams is taken away for a while")
	grant := revokeFromDaemon(o.t, icecreams.may("patch", "/status"))
	icecreams.create(o.t, ns, "in-trouble", 1)
	waitUntil(o.t, "it is alerted of", func(ctx context.Context) error {
		answer, err := o.api.Alerts(ctx)
		if err != nil {
			return err
		}
		for _, alert := range answer.Alerts {
			if alert.Labels["alertname"] == "SampleControllerManagerControllerDegraded" && alert.State == promv1.AlertStateFiring &&
				alert.Labels["controller"] == model.LabelValue(icecreams.controller) {
				if alert.Labels["severity"] != "critical" || alert.Annotations["summary"] != model.LabelValue(icecreams.controller+" is degraded.") {
					o.t.Errorf("the alert is %v, %v", alert.Labels, alert.Annotations)
				}
				return nil
			}
		}
		return fmt.Errorf("there is %v", answer.Alerts)
	})
	if *picture != "" {
		o.pass()
	}
	grant()
	icecreams.waitReady(o.t, ns, "in-trouble", 1)
}

func (o *observation) over() promv1.Range {
	now := time.Now()
	return promv1.Range{Start: o.began, End: now, Step: max(scrapeInterval(), now.Sub(o.began)/100)}
}

// draw draws the dashboard, and wants the picture to be well-formed, with a line at least
// in each panel.
func (o *observation) draw() {
	o.t.Helper()
	dashboard := o.config.Manifests.Dashboard
	svg, err := monitoring.Picture{
		Dashboard: dashboard, Over: o.over(), Window: rateWindow(), Marks: o.marks,
		Caption: "Drawn by TestMonitoring in hack/e2e from the queries in dashboard.json, as a real Prometheus answers them, and not by Grafana:\n" +
			"three replicas with the race detector, 20 Foos and 20 Icecreams, of which ten in a second are scaled.",
	}.SVG(o.t.Context(), o.api)
	if err != nil {
		o.t.Fatal(err)
	}
	lines, panels := bytes.Count(svg, []byte("<polyline")), 0
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) > 0 {
			panels++
		}
	}
	if lines < panels || bytes.Contains(svg, []byte("NaN")) {
		o.t.Errorf("there are %d lines in %d panels: %s", lines, panels, svg)
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for err == nil {
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) {
		o.t.Errorf("the picture is not well-formed: %v", err)
	}
	path := *picture
	if path == "" {
		path = filepath.Join(o.t.TempDir(), "dashboard.svg")
	}
	if err := os.WriteFile(path, svg, 0o644); err != nil {
		o.t.Fatal(err)
	}
}

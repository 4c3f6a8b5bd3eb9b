// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
	"samplecontroller.io/sample-controller-manager/hack/e2e/monitoring"
)

// rateScrapes is over how many scrapes rates are taken.
const rateScrapes = 5

const rateWindow = rateScrapes * scrapeInterval

// unhurried are durations by which no machine is too busy to keep the lead. What is released
// is taken at once nevertheless.
var unhurried = []string{"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=2s"}

// observation is three replicas under the eyes of a Prometheus.
type observation struct {
	*prometheus
	began    time.Time
	replicas map[string]*framework.Replica // by what takes the place of the Pod's name
}

// TestMonitoring has a real Prometheus do what manifests/monitoring says: nothing is alerted
// of while one replica works and two stand by, nor by a hand-over; each query of the
// dashboard and of the alerts finds data; and a controller in trouble is alerted of.
func TestMonitoring(t *testing.T) {
	framework.Long(t)
	framework.FreeLease(t)
	t.Setenv("GOMEMLIMIT", "460MiB") // as in manifests/base
	o := startObservation(t)
	ns := framework.NewNamespace(t)
	stopLoad := scaleAlways(t, ns)
	o.pass()
	o.waitQuiet()

	leader := string(o.waitFound(`leader_election_master_status == 1`, 1)[0].Metric["pod"])
	o.replicas[leader].Stop()
	o.waitFound(fmt.Sprintf(`leader_election_master_status{pod!=%q} == 1`, leader), 1)
	o.start(leader)
	o.pass()
	o.waitQuiet()
	if fired := o.mustQuery(`max_over_time(ALERTS{alertstate="firing"}[1d])`); len(fired) > 0 {
		t.Errorf("without any trouble there were alerts: %v", fired)
	}
	o.wantData()

	o.makeTrouble(ns)
	stopLoad()
	t.Logf("%v series of a replica are scraped", o.mustQuery(`max(scrape_samples_scraped)`)[0].Value)
}

func startObservation(t *testing.T) *observation {
	t.Helper()
	m := installMonitoring(t)
	o := &observation{replicas: map[string]*framework.Replica{}}
	var targets []monitoring.Target
	for i := range 3 {
		pod := fmt.Sprintf("replica-%d", i+1)
		r := framework.StartReplica(t, unhurried...)
		o.replicas[pod] = r
		targets = append(targets, monitoring.Target{Address: strings.TrimPrefix(r.URL, "https://"), Pod: pod})
	}
	for _, r := range o.replicas {
		r.Ready()
	}
	o.prometheus = startPrometheus(t, m, targets...)
	o.waitFound(`up == 1`, 3)
	o.began = time.Now()
	return o
}

// start starts a replica again that has ended, where it was.
func (o *observation) start(pod string) {
	o.T.Helper()
	r := o.replicas[pod]
	r.Program = framework.StartProgram(o.T, r.Cmd.Path, r.Cmd.Args[1:]...)
	r.Ready()
	o.waitFound(`up == 1`, 3)
}

// pass lets a few scrapes pass, enough for a rate.
func (o *observation) pass() {
	o.T.Helper()
	o.waitScraped(rateScrapes)
}

// waitQuiet waits until no alert is even on the way to fire, but for those by which a busy
// machine tells the truth about itself.
func (o *observation) waitQuiet() {
	o.T.Helper()
	o.waitFound(`ALERTS{alertname!~"SampleControllerManager(UsersWait|WorkWaits)"}`, 0)
}

// scaleAlways makes objects, and changes them until it is told to stop.
func scaleAlways(t *testing.T, ns string) (stop func()) {
	t.Helper()
	const objects = 20
	ctx, cancel := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	for _, k := range framework.Kinds {
		changing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", k.Resource, i%objects)
				if i < objects {
					_, _ = k.TryDeclare(ctx, ns, name, framework.Naming(name)) // only the load matters
				} else {
					_ = k.TryPatch(ctx, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+i/objects%3))
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
	o.T.Helper()
	queries := 0
	for _, panel := range o.config.Manifests.Dashboard.Panels {
		queries += len(panel.Targets)
		if err := panel.Check(o.T.Context(), o.api, rateWindow, o.over()); err != nil {
			o.T.Error(err)
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
				o.T.Errorf("%s looks at %s, and there is no such thing", alert.Alert, selector)
			}
			for _, series := range found {
				for label := range series.Metric {
					labels[string(label)] = true
				}
			}
		}
		for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(fmt.Sprint(alert.Annotations), -1) {
			if !labels[label[1]] {
				o.T.Errorf("%s tells the label %s, which is not there", alert.Alert, label[1])
			}
		}
	}
	if queries < 20 || selectors < 20 {
		o.T.Errorf("%d queries and %d selectors were looked at: are these all?", queries, selectors)
	}
	o.T.Logf("%d queries of the dashboard and %d selectors of the alerts have data", queries, selectors)
}

// makeTrouble takes a permission from a controller, and waits until that is alerted of,
// which takes less long than the manifests say. Then it gives the permission back.
func (o *observation) makeTrouble(ns string) {
	o.T.Helper()
	for _, alert := range o.config.Manifests.Alerts.All() {
		if alert.For != "" {
			alert.For = "1s"
		}
	}
	if err := o.config.WriteAlerts(o.dir); err != nil {
		o.T.Fatal(err)
	}
	o.Signal(syscall.SIGHUP)
	grant := framework.RevokeFromDaemon(o.T, framework.Icecreams.May("patch", "/status"))
	framework.Icecreams.Create(o.T, ns, "in-trouble", 1)
	clustertest.WaitUntil(o.T, "it is alerted of", func(ctx context.Context) error {
		answer, err := o.api.Alerts(ctx)
		if err != nil {
			return err
		}
		for _, alert := range answer.Alerts {
			if alert.Labels["alertname"] == "SampleControllerManagerControllerDegraded" && alert.State == promv1.AlertStateFiring &&
				alert.Labels["controller"] == model.LabelValue(framework.Icecreams.Controller) {
				if alert.Labels["severity"] != "critical" || alert.Annotations["summary"] != model.LabelValue(framework.Icecreams.Controller+" is degraded.") {
					o.T.Errorf("the alert is %v, %v", alert.Labels, alert.Annotations)
				}
				return nil
			}
		}
		return fmt.Errorf("there is %v", answer.Alerts)
	})
	grant()
	framework.Icecreams.WaitReady(o.T, ns, "in-trouble", 1)
}

func (o *observation) over() promv1.Range {
	now := time.Now()
	return promv1.Range{Start: o.began, End: now, Step: max(scrapeInterval, now.Sub(o.began)/100)}
}

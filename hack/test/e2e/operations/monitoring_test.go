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

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/monitoring"
)

// rateScrapes is the number of scrapes over which rates are computed.
const rateScrapes = 5

const rateWindow = rateScrapes * scrapeInterval

// observation is three replicas that a Prometheus scrapes.
type observation struct {
	*prometheus
	began    time.Time
	replicas map[string]*framework.Replica // by the value of the label pod
}

// TestMonitoring runs a real Prometheus with manifests/monitoring. No alert fires while one
// replica works and two stand by, nor after a handover. Each query of the dashboard and of the
// alerts finds data. A controller without permissions causes an alert.
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
	if fired := o.mustQuery(`max_over_time(ALERTS{alertstate="firing",` + notBusy + `}[1d])`); len(fired) > 0 {
		t.Errorf("alerts without a problem: %v", fired)
	}
	o.wantData()

	o.makeTrouble(ns)
	stopLoad()
	t.Logf("%v series per replica", o.mustQuery(`max(scrape_samples_scraped)`)[0].Value)
}

func startObservation(t *testing.T) *observation {
	t.Helper()
	m := installMonitoring(t)
	o := &observation{replicas: map[string]*framework.Replica{}}
	var targets []monitoring.Target
	for i := range 3 {
		pod := fmt.Sprintf("replica-%d", i+1)
		r := framework.StartReplica(t)
		o.replicas[pod] = r
		targets = append(targets, monitoring.Target{Address: strings.TrimPrefix(r.URL, "https://"), Pod: pod})
	}
	for _, r := range o.replicas {
		r.Ready()
	}
	o.prometheus = startPrometheus(t, m, scrapeInterval, targets...)
	o.waitFound(`up == 1`, 3)
	o.began = time.Now()
	return o
}

// start restarts a replica that has ended, at the same address.
func (o *observation) start(pod string) {
	o.T.Helper()
	r := o.replicas[pod]
	r.Program = framework.StartProgram(o.T, r.Cmd.Path, r.Cmd.Args[1:]...)
	r.Ready()
	o.waitFound(`up == 1`, 3)
}

// pass waits for a few scrapes, enough for a rate.
func (o *observation) pass() {
	o.T.Helper()
	o.waitScraped(rateScrapes)
}

// notBusy excludes the alerts that are legitimate on a busy machine.
const notBusy = `alertname!~"SampleControllerManager(UsersWait|WorkWaits|APIServerSlow)"`

// waitQuiet waits until no alert is even pending, except those that are legitimate on a busy
// machine, and that on objects which are Reconciling: under the load some always are, and only
// after an hour it fires.
func (o *observation) waitQuiet() {
	o.T.Helper()
	const pending = `ALERTS{alertname="SampleControllerManagerObjectsReconciling",alertstate="pending"}`
	o.waitFound(`ALERTS{`+notBusy+`} unless `+pending, 0)
}

// scaleAlways creates objects and changes them until the context ends.
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

// absentWhenWell matches the selectors of series that are not there while all is well: metrics of
// kube-state-metrics and of API servers, alerts that fire, and failed requests.
var absentWhenWell = regexp.MustCompile(`^(kube_deployment_.*|up\{job="apiserver"\}|ALERTS\{.*|rest_client_requests_total\{.*code="(<error>|429)"\})$`)

// wantData checks that each query of the dashboard and each selector of the rules finds data,
// with the labels that are displayed.
func (o *observation) wantData() {
	o.T.Helper()
	queries := 0
	dashboard := o.config.Manifests.Dashboard
	for _, annotation := range dashboard.Annotations.List {
		if err := annotation.Query().Check(o.T.Context(), o.api, rateWindow, o.over()); err != nil {
			o.T.Errorf("annotation %q: %v", annotation.Name, err)
		}
	}
	for _, panel := range dashboard.Panels {
		if panel.Type == "table" {
			continue // it shows series of kube-state-metrics
		}
		queries += len(panel.Targets)
		if err := panel.Check(o.T.Context(), o.api, rateWindow, o.over()); err != nil {
			o.T.Error(err)
		}
	}
	selectors := 0
	for _, rule := range o.config.Manifests.Alerts.Rules() {
		if rule.Record != "" {
			o.wantSeries(rule, rule.Record)
		}
		labels := map[string]bool{}
		for _, selector := range monitoring.Selectors(rule.Expr) {
			if absentWhenWell.MatchString(selector) {
				continue
			}
			selectors++
			for _, series := range o.wantSeries(rule, selector) {
				for label := range series.Metric {
					labels[string(label)] = true
				}
			}
		}
		for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(fmt.Sprint(rule.Annotations), -1) {
			if len(labels) > 0 && !labels[label[1]] { // else it is about a recorded series
				o.T.Errorf("%s uses the label %s, which does not exist", rule.Alert, label[1])
			}
		}
	}
	if queries < 20 || selectors < 20 {
		o.T.Errorf("checked only %d queries and %d selectors", queries, selectors)
	}
	o.T.Logf("%d queries of the dashboard and %d selectors of the rules have data", queries, selectors)
}

// wantSeries returns the series that a selector of a rule finds. There must be some.
func (o *observation) wantSeries(rule *monitoring.Rule, selector string) model.Vector {
	o.T.Helper()
	found := o.mustQuery(selector)
	if len(found) == 0 {
		o.T.Errorf("%s%s selects %s, which does not exist", rule.Alert, rule.Record, selector)
	}
	return found
}

// makeTrouble revokes a permission of a controller and waits for the alert, which fires sooner
// here than in the manifests. Then it restores the permission.
func (o *observation) makeTrouble(ns string) {
	o.T.Helper()
	hasten(o.config.Manifests)
	if err := o.config.WriteAlerts(o.dir); err != nil {
		o.T.Fatal(err)
	}
	o.Signal(syscall.SIGHUP)
	grant := framework.RevokeFromDaemon(o.T, framework.Icecreams.May("patch", "/status"))
	framework.Icecreams.Create(o.T, ns, "in-trouble", 1)
	clustertest.WaitUntil(o.T, "the alert fires", func(ctx context.Context) error {
		answer, err := o.api.Alerts(ctx)
		if err != nil {
			return err
		}
		for _, alert := range answer.Alerts {
			if alert.Labels["alertname"] == "SampleControllerManagerControllerDegraded" && alert.State == promv1.AlertStateFiring &&
				alert.Labels["controller"] == model.LabelValue(framework.Icecreams.Controller) {
				if alert.Labels["severity"] != "critical" || alert.Annotations["summary"] != model.LabelValue(framework.Icecreams.Controller+" in sample-controller-manager is degraded.") {
					o.T.Errorf("the alert is %v, %v", alert.Labels, alert.Annotations)
				}
				return nil
			}
		}
		return fmt.Errorf("alerts: %v", answer.Alerts)
	})
	grant()
	framework.Icecreams.WaitReady(o.T, ns, "in-trouble", 1)
}

// hasten makes all alerts fire as soon as their expression holds for a second.
func hasten(m *monitoring.Manifests) {
	for _, alert := range m.Alerts.All() {
		if alert.For != "" {
			alert.For = "1s"
		}
	}
}

func (o *observation) over() promv1.Range {
	now := time.Now()
	return promv1.Range{Start: o.began, End: now, Step: max(scrapeInterval, now.Sub(o.began)/100)}
}

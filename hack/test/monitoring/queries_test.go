// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// values are the values of series, one a minute in promtool's notation. {one, is short for the
// labels of an installation.
type values map[string]string

// result is the value of each series that a query returns.
type result map[string]int

// Replica a leads for 5 minutes, then b. After 10 minutes no scrape succeeds for 3 minutes.
var handover = values{
	`up{one,pod="a"}`: `1x9 0x2 1x10`,
	`up{one,pod="b"}`: `1x9 0x2 1x10`,
	`leader_election_master_status{one,pod="a"}`:         `1x4 0x4 stale _x2 0x10`,
	`leader_election_master_status{one,pod="b"}`:         `0x4 1x4 stale _x2 1x10`,
	`kubernetes_build_info{one,pod="a",git_version="1"}`: `1x4 stale`,
	`kubernetes_build_info{one,pod="a",git_version="2"}`: `_x5 1x4 stale _x2 1x10`,
	`up{two,pod="c"}`: `0x20`,
}

// queryTests are queries of the dashboard, by title, with their results at a time.
var queryTests = []struct {
	query  string
	values values
	at     string
	want   result
}{
	{"Leader", nil, "1m", result{`{namespace="sample-controller-manager",pod="nobody leads"}`: 0}},
	{"Leader", handover, "4m", result{`{namespace="one",pod="a"}`: 1, `{namespace="two",pod="nobody leads"}`: 0}},
	{"Leader", handover, "11m", result{`{namespace="one",pod="nobody leads"}`: 0,
		`{namespace="two",pod="nobody leads"}`: 0}},
	{"Leader over time", nil, "1m", result{`{namespace="sample-controller-manager",pod="nobody leads"}`: 0}},
	{"Leader over time", values{`ALERTS{one,alertname="SampleControllerManagerTwoLeaders",alertstate="firing"}`: `1x5`,
		`leader_election_master_status{one,pod="a"}`: `1x5`, `leader_election_master_status{one,pod="b"}`: `1x5`},
		"1m", result{`{namespace="one",pod="several lead"}`: 0}},
	{"Handovers", handover, "4m", nil},
	{"Handovers", handover, "5m", result{`{namespace="one",pod="b"}`: 1}},
	{"Handovers", handover, "6m", nil},
	{"Handovers", handover, "13m", nil},
	{"Rollouts", handover, "4m", nil},
	{"Rollouts", handover, "5m", result{`{namespace="one",git_version="2"}`: 1}},
	{"Rollouts", handover, "6m", nil},
	{"Rollouts", handover, "13m", nil},
	{"Alerts", nil, "1m", result{`{alertname="none"}`: 0}},
	{"Alerts", values{
		`ALERTS{one,alertname="SampleControllerManagerNoLeader",alertstate="firing",severity="critical"}`: `1x5`,
		`ALERTS{two,alertname="SampleControllerManagerSyncsFail",alertstate="firing",severity="warning"}`: `1x5`,
		`ALERTS{two,alertname="SampleControllerManagerMemory",alertstate="pending",severity="warning"}`:   `1x5`},
		"1m", result{`{alertname="NoLeader"}`: 2, `{alertname="SyncsFail"}`: 1}},
	{"Controller states", values{
		`sample_controller_manager_controller_state{one,pod="a",controller="foo",state="Running"}`:  `1x5`,
		`sample_controller_manager_controller_state{one,pod="a",controller="foo",state="Standby"}`:  `0x5`,
		`sample_controller_manager_controller_state{one,pod="b",controller="foo",state="Standby"}`:  `1x5`,
		`sample_controller_manager_controller_state{one,pod="b",controller="foo",state="Running"}`:  `0x5`,
		`sample_controller_manager_controller_state{one,pod="a",controller="bar",state="Degraded"}`: `1x5`,
		`sample_controller_manager_controller_state{one,pod="b",controller="bar",state="Standby"}`:  `1x5`},
		"1m", result{`{controller="foo"}`: 3, `{controller="bar"}`: 7}},
	{"Stalled objects", values{
		`kube_foo_status_condition{namespace="x",name="web",condition="Stalled",reason="WriteDenied"}`:          `1x5`,
		`kube_foo_status_condition{namespace="x",name="app",condition="Stalled",reason="WriteDenied"}`:          `0x5`,
		`kube_icecream_status_condition{namespace="y",name="web",condition="Ready",reason="Available"}`:         `1x5`,
		`kube_icecream_status_condition{namespace="y",name="cone",condition="Stalled",reason="ImageContested"}`: `1x5`},
		"1m", result{`{kind="Foo",namespace="x",name="web",reason="WriteDenied"}`: 1,
			`{kind="Icecream",namespace="y",name="cone",reason="ImageContested"}`: 1}},
}

// TestDashboardQueries evaluates queries of the dashboard with promtool: what matters in an outage
// is data, also when nothing is scraped, and an annotation marks a change once.
func TestDashboardQueries(t *testing.T) {
	if testing.Short() {
		t.Skip("long, because Prometheus must be built: runs in make test-all")
	}
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "promtool")
	if err != nil {
		t.Fatal(err)
	}
	d := dashboard(t)
	var tests []any
	for _, test := range queryTests {
		query, err := d.Query(test.query)
		if err != nil {
			t.Fatal(err)
		}
		series, samples := []any{}, []any{}
		for name, values := range test.values {
			for _, namespace := range []string{"one", "two"} {
				name = strings.Replace(name, "{"+namespace+",", `{job="`+Job+`",namespace="`+namespace+`",`, 1)
			}
			series = append(series, map[string]any{"series": name, "values": values})
		}
		for labels, value := range test.want {
			samples = append(samples, map[string]any{"labels": labels, "value": value})
		}
		check := map[string]any{"expr": query.PromQL(time.Minute), "eval_time": test.at, "exp_samples": samples}
		tests = append(tests, map[string]any{"name": test.query + " at " + test.at, "interval": "1m",
			"input_series": series, "promql_expr_test": []any{check}})
	}
	content, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), paths["promtool"], "test", "rules", file).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, output)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// dashboard returns the dashboard.
func dashboard(t *testing.T) Dashboard {
	t.Helper()
	var d Dashboard
	if err := yaml.Unmarshal([]byte(read(t, "manifests", "monitoring", "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// ofInstallation matches the selectors that choose no Pods: they ask about an installation.
var ofInstallation = regexp.MustCompile(`^(ALERTS|namespace_controller:.*|leader_election_master_status|` +
	`kubernetes_build_info|kube_deployment_.*|up)\{`)

// TestDashboardVariables checks that each query of the dashboard respects the chosen namespaces
// and Pods. The namespaces of kube-state-metrics are those of the objects.
func TestDashboardVariables(t *testing.T) {
	d := dashboard(t)
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	if want := []string{"datasource", "namespace", "pod", "runbook"}; !slices.Equal(names, want) {
		t.Errorf("variables %v, want %v", names, want)
	}
	panels := d.Panels
	for _, a := range d.Annotations.List {
		panels = append(panels, Panel{Title: a.Name, Targets: []Query{a.Query()}})
	}
	for _, panel := range panels {
		for _, query := range panel.Targets {
			for _, selector := range Selectors(query.Expr) {
				if strings.Contains(selector, "_status_condition{") {
					continue
				}
				if !strings.Contains(selector, `namespace=~"$namespace"`) {
					t.Errorf("panel %q: %s selects no namespace", panel.Title, selector)
				}
				if !ofInstallation.MatchString(selector) && !strings.Contains(selector, `pod=~"$pod"`) {
					t.Errorf("panel %q: %s selects no Pods", panel.Title, selector)
				}
			}
		}
	}
}

// TestPanelsLinkToRunbook checks that each panel links to headings of the runbook, and that
// kustomize finds the address, which alone is between tabs.
func TestPanelsLinkToRunbook(t *testing.T) {
	const page = "manifests/monitoring/runbook.md"
	if json := read(t, "manifests", "monitoring", "dashboard.json"); strings.Count(json, `\t`) != 2 ||
		!strings.Contains(json, `\t`+page+`\t`) {
		t.Errorf("the dashboard does not have %s as its only text between tabs", page)
	}
	anchors := sets.New[string]()
	for _, heading := range regexp.MustCompile(`(?m)^#+ (\w+)$`).FindAllStringSubmatch(read(t, page), -1) {
		anchors.Insert(strings.ToLower(heading[1]))
	}
	for _, panel := range dashboard(t).Panels {
		links := 0
		for _, link := range panel.Links {
			if anchor, ok := strings.CutPrefix(link.URL, "${runbook:raw}#"); ok {
				links++
				if !anchors.Has(anchor) {
					t.Errorf("panel %q: the runbook has no heading for %s", panel.Title, anchor)
				}
			}
		}
		if links == 0 && panel.Type != "row" {
			t.Errorf("panel %q does not link to the runbook", panel.Title)
		}
	}
}

// TestStatesAreMapped compares the states of the timeline, the numbers that its query gives
// them, and the states that the daemon reports.
func TestStatesAreMapped(t *testing.T) {
	metric := regexp.MustCompile("controller_state`.*by controller and state \\(([\\w, ]+)\\)").
		FindStringSubmatch(read(t, "manifests", "metrics.md"))
	if metric == nil {
		t.Fatal("manifests/metrics.md does not list the states")
	}
	panels := dashboard(t).Panels
	i := slices.IndexFunc(panels, func(p Panel) bool { return p.Title == "Controller states" })
	if i < 0 || panels[i].Type != "state-timeline" || len(panels[i].FieldConfig.Defaults.Mappings) != 1 {
		t.Fatal("no state timeline with one mapping")
	}
	mapped, queried := map[string]string{}, map[string]string{}
	mapping := panels[i].FieldConfig.Defaults.Mappings[0]
	for number := range mapping.Options {
		mapped[mapping.Text(number)] = number
	}
	term := regexp.MustCompile(`(\d+) \* \w+\{[^}]*state="(\w+)"\}`)
	for _, term := range term.FindAllStringSubmatch(panels[i].Targets[0].Expr, -1) {
		queried[term[2]] = term[1]
	}
	if !maps.Equal(mapped, queried) {
		t.Errorf("the mapping is %v, the query gives %v", mapped, queried)
	}
	if got, want := sets.KeySet(mapped), sets.New(strings.Split(metric[1], ", ")...); !got.Equal(want) {
		t.Errorf("states %v, want %v", sets.List(got), sets.List(want))
	}
}

// TestThresholdsAreLimitsOfAlerts checks the lines of panels that show what an alert judges.
func TestThresholdsAreLimitsOfAlerts(t *testing.T) {
	var exprs strings.Builder
	for _, a := range rules(t).All() {
		exprs.WriteString(a.Alert + ": " + strings.ReplaceAll(a.Expr, "\n", " ") + "\n")
	}
	lines := map[string][]string{} // the limits, by panel
	for _, panel := range dashboard(t).Panels {
		for _, step := range panel.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value != nil {
				lines[panel.Title] = append(lines[panel.Title], strconv.FormatFloat(*step.Value, 'g', -1, 64))
			}
		}
	}
	for _, test := range []struct{ panel, alert, limit string }{
		{"Late changes, in an hour", "UsersWait", "0.01"},
		{"Late changes, in an hour", "UsersWait", "0.144"},
		{"Time with waiting objects, in an hour", "WorkWaits", "0.01"},
		{"Time with waiting objects, in an hour", "WorkWaits", "0.144"},
		{"Handovers, in an hour", "LeadLost", "1.5"},
		{"Handovers, in an hour", "Handovers", "6.5"},
		{"Longest running sync", "SyncHangs", "60"},
		{"Watch age", "WatchSilent", "180"},
	} {
		fires := `(?m)^SampleControllerManager` + test.alert + `: .* > ` + regexp.QuoteMeta(test.limit) + `\b`
		if got := lines[test.panel]; !slices.Contains(got, test.limit) {
			t.Errorf("panel %q has lines at %v, want one at %s", test.panel, got, test.limit)
		}
		if !regexp.MustCompile(fires).MatchString(exprs.String()) {
			t.Errorf("%s does not fire above %s, where panel %q has a line", test.alert, test.limit, test.panel)
		}
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/monitoring"
)

// TestMonitoringOfTwoInstallations scrapes two installations with a real Prometheus, with all
// alerts hastened. Two leaders in two namespaces fire nothing. Then one of them is cut off from
// the API server: it cannot authenticate the scraper, and the alert about that names its namespace
// instead of the consequences.
func TestMonitoringOfTwoInstallations(t *testing.T) {
	framework.Long(t)
	m := installMonitoring(t)
	hasten(m)
	for _, alert := range m.Alerts.All() {
		if address, err := url.Parse(alert.Annotations["runbook_url"]); err != nil || !address.IsAbs() || address.Fragment == "" {
			t.Errorf("%s: runbook_url is %q, %v, want an absolute one", alert.Alert, alert.Annotations["runbook_url"], err)
		}
	}
	if address, err := url.Parse(m.Dashboard.RunbookAddress()); err != nil || !address.IsAbs() {
		t.Errorf("the dashboard links to %q, %v, want an absolute address", m.Dashboard.RunbookAddress(), err)
	}
	link := clustertest.StartLink(t, framework.Cluster())
	near := startInstallation(t, framework.Cluster().Config().Host)
	far := startInstallation(t, link.URL(), framework.ShortLease...)
	var targets []monitoring.Target
	for _, i := range []*framework.Isolated{near, far} {
		targets = append(targets, monitoring.Target{Address: strings.TrimPrefix(i.URL, "https://"), Pod: "replica-1", Namespace: i.Namespace})
	}
	p := startPrometheus(t, m, scrapeInterval, targets...)
	p.waitFound(`leader_election_master_status == 1`, 2)
	p.waitScraped(2)
	// Each has one replica, and two are expected.
	const others = `alertname!="SampleControllerManagerReplicasMissing",` + notBusy
	p.waitFound(`ALERTS{`+others+`}`, 0)

	link.Hold(clustertest.Both)
	link.Cut()
	// APIServerUnreachable may fire first, for scrapes that a cached answer still permits.
	alert := p.waitFound(`ALERTS{alertname="SampleControllerManagerUnseen",alertstate="firing"}`, 1)[0]
	if got := string(alert.Metric["namespace"]); got != far.Namespace {
		t.Errorf("the alert is about namespace %s, want %s", got, far.Namespace)
	}
	p.waitScraped(3)
	p.waitFound(`up == 1`, 1)
	p.waitFound(`ALERTS{alertname!="SampleControllerManagerUnseen",`+others+`}`, 0)
	leader, err := m.Dashboard.Query("Leader")
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range p.waitFound(leader.PromQL(rateWindow), 2) {
		want := model.LabelValue("replica-1")
		if string(shown.Metric["namespace"]) == far.Namespace {
			want = "nobody leads"
		}
		if shown.Metric["pod"] != want {
			t.Errorf("the dashboard shows the leader %v, want %s", shown.Metric, want)
		}
	}

	link.Release()
	p.waitFound(`leader_election_master_status == 1`, 2)
	p.waitFound(`ALERTS{`+others+`}`, 0)
}

// startInstallation starts a replica in a namespace of its own that serves this namespace.
func startInstallation(t *testing.T, server string, flags ...string) *framework.Isolated {
	t.Helper()
	i := framework.NewIsolated(t)
	kubeconfig := framework.Kubeconfig(t, func(_ string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		cluster.Server, user.Token = server, i.Token(t, nil)
	})
	return i.Start(t, kubeconfig, append(flags, "--namespace="+i.Namespace)...)
}

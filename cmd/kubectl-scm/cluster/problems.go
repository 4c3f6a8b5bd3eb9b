// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/debug"
)

// Problems says what is wrong, the worst first. lead is nil if the Lease could not be read.
func Problems(lead *Lead, pods []Pod, report debug.Report) []string {
	problems := []string{}
	add := func(format string, args ...any) {
		problems = append(problems, debug.Short(fmt.Sprintf(format, args...)))
	}
	if lead != nil && lead.Holder == "" {
		add("nobody leads: no replica can get the Lease, or none runs")
	} else if lead != nil && lead.Expired(time.Now()) {
		add("nobody leads: %s has not renewed the Lease for %s", lead.Pod, duration.HumanDuration(time.Since(lead.Renewed)))
	}
	if pods != nil && ReadyPods(pods) < len(pods) {
		add("%d of %d replicas are not ready: %s", len(pods)-ReadyPods(pods), len(pods), unready(pods))
	}
	for _, c := range report.Controllers {
		failing := 0
		for _, q := range c.Queues {
			failing += q.Failing
		}
		switch {
		case c.State == "Degraded" || c.State == "WaitingForAPI":
			add("%s is %s", c.Name, c.State)
		case c.Unhealthy != "":
			add("%s is unhealthy: %s", c.Name, c.Unhealthy)
		case failing > 0:
			add("%s fails for %d objects", c.Name, failing)
		}
	}
	if report.ConfigRefused != "" {
		add("the configuration file is refused: %s", report.ConfigRefused)
	}
	for _, r := range report.Resources {
		if !r.Served {
			add("%s: %s", r.Name, cmp.Or(r.Reason, "not served"))
		}
	}
	return problems
}

// ReadyPods returns how many are ready.
func ReadyPods(pods []Pod) int {
	ready := 0
	for _, pod := range pods {
		if pod.Ready {
			ready++
		}
	}
	return ready
}

func unready(pods []Pod) string {
	var said []string
	for _, pod := range pods {
		if !pod.Ready {
			said = append(said, pod.String())
		}
	}
	return strings.Join(said, ", ")
}

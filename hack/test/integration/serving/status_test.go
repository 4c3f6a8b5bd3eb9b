// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestStatusListsStoppedControllers(t *testing.T) {
	framework.OwnAPIServer(t)
	ns := framework.NewNamespace(t)
	framework.Foos.Create(t, ns, "a", 1)
	framework.Icecreams.UninstallCRD(t)
	stop := framework.StartReplica(t).Stop
	framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
	v := framework.NewViewer(t, framework.StartDaemon(t, "--controllers=*,-foo-controller"))

	// states returns the controllers of a report by name.
	states := func(r debug.Report) map[string]debug.Controller {
		all := map[string]debug.Controller{}
		for _, c := range r.Controllers {
			all[c.Name] = c
		}
		return all
	}
	var r debug.Report
	text := v.Page("", &r)
	if r.Leading || r.Process == "" || strings.Contains(r.Leader, r.Process) || !strings.Contains(r.Leader, " leads since ") ||
		!strings.Contains(strings.Join(strings.Fields(text), " "), " Leader: "+r.Leader+" Time: ") { // the page is wrapped
		t.Errorf("a standby reports the leader %q, leading %t:\n%s", r.Leader, r.Leading, text)
	}
	if all := states(r); all[framework.Foos.Controller].State != "Disabled" || all[framework.Icecreams.Controller].State != "Standby" {
		t.Errorf("status of a standby:\n%s", text)
	}
	var e debug.Explanation
	v.Page("/foo-controller/"+ns+"/a", &e)
	if e.State != "Disabled" || e.Next != "nothing: foo-controller is disabled in this process" {
		t.Errorf("explanation of a disabled controller: %+v", e)
	}
	v.Page("/"+framework.Aggregator+"/"+ns+"/a", &e)
	if e.State != "Standby" || e.Reason != r.Leader || e.Found { // it reads no Foos while their controller is disabled
		t.Errorf("explanation of a standby: %+v", e)
	}

	stop()
	clustertest.WaitUntil(t, "the other process leads and waits for an API", func(context.Context) error {
		var r debug.Report
		text := v.Page("", &r)
		all := states(r)
		waiting, aggregating := all[framework.Icecreams.Controller], all[framework.Aggregator]
		unserved := slices.ContainsFunc(r.Resources,
			func(x debug.Resource) bool { return x.Name == framework.Icecreams.CRD() && !x.Served && x.Reason != "" })
		if !r.Leading || waiting.State != "WaitingForAPI" || !strings.Contains(waiting.Reason, framework.Icecreams.CRD()) ||
			aggregating.State != "WaitingForAPI" || !unserved {
			return errors.New(text)
		}
		return nil
	})
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// start starts a dashboard and returns it with the address that it prints.
func start(t *testing.T, args ...string) (p *framework.Program, url string) {
	t.Helper()
	p = framework.StartProgram(t, framework.Plugin(), append([]string{"dashboard"}, args...)...)
	p.WaitLog("\n")
	url, ok := strings.CutPrefix(strings.TrimSpace(p.Log.String()), "Dashboard: ")
	if !ok {
		t.Fatalf("it prints %q", p.Log)
	}
	return p, url
}

// wait waits until a page shows what matches all of the patterns.
func wait(t *testing.T, r reader, patterns ...string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("the page shows %q", patterns), func(context.Context) error {
		text, err := r.text()
		if err != nil {
			return err
		}
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(text) {
				return fmt.Errorf("no %q in\n%s", pattern, text)
			}
		}
		return nil
	})
}

// must ends the test if an action failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDashboard(t *testing.T) {
	page := newReader(t)
	framework.FreeLease(t)
	daemon := framework.StartReplica(t).Ready()
	host, _, _ := strings.Cut(framework.WaitLeader(t, ""), "_")
	ns := framework.NewNamespace(t)
	framework.Foos.Create(t, ns, "web", 2)
	framework.Foos.WaitReady(t, ns, "web", 2)
	plugin, url := start(t, "--server="+daemon.URL, "--insecure-skip-tls-verify", "--kubeconfig="+framework.Cluster().Kubeconfig, "-n", ns)

	must(t, page.open(url))
	wait(t, page, "All is well", regexp.QuoteMeta(host)+` leads\. It began \d+ \w+ ago and renewed the Lease \d+ s ago`, `foo-controller\s+Running`,
		`icecream-controller\s+Running`, `status-aggregator-controller\s+Running`, "1 Foos in namespace "+ns+", 0 not Ready")
	checkFirstScreen(t, page, url)

	if os.Getenv("SCREENSHOTS") != "" {
		for i := range 40 { // so that the plots show something
			framework.Foos.Create(t, ns, fmt.Sprintf("app-%d", i), 1)
			wait(t, page, fmt.Sprintf("%d Foos in namespace %s, 0 not Ready", i+2, ns))
		}
	}

	// The page shows what goes wrong, without being opened again.
	framework.Kubectl(t, "-n", ns, "create", "deployment", "legacy-shop", "--image=nginx")
	framework.Foos.CreateNaming(t, ns, "shop", "legacy-shop")
	wait(t, page, "Objects: Foo "+ns+"/shop is Stalled: DeploymentConflict: ", "Foo "+ns+`/shop\s+Stalled`, " Foos in namespace "+ns+", 1 not Ready")
	screenshot(page, "dashboard.png")

	must(t, page.follow("object/foo/"+ns+"/shop"))
	wait(t, page, "Foo "+ns+"/shop", "Stalled, DeploymentConflict, which began", "Wanted", "Actual", `its owner\s+Foo "shop"`, "differs", "Next: nothing: DeploymentConflict: ",
		"Last syncs", "foos added", "Events", `Warning\s+ErrResourceExists`)
	screenshot(page, "dashboard-object.png")
	if b, ok := page.(*browser); ok {
		must(t, b.open(url))
		must(t, b.click("c/foo-controller"))
		wait(t, page, `Queue foo-controller: \d+ running`, "Last failures", "Last syncs", ns+"/")
		checkDark(t, b)
		must(t, b.open(url))
		wait(t, page, ns+"/shop")
	} else {
		must(t, page.open(url))
	}

	// It says that the daemon is down, and still shows the objects.
	daemon.Stop()
	wait(t, page, "Daemon: nobody leads", "Nobody leads", `Not readable any more: .*connection refused`, `\d+ s ago, old`, "Foo "+ns+`/shop\s+Stalled`)
	must(t, page.follow("object/foo/"+ns+"/shop"))
	wait(t, page, "Daemon: nobody leads", "Stalled", "DeploymentConflict", `Not readable: .*connection refused`)
	if b, ok := page.(*browser); ok {
		problems, _, _ := b.seen()
		for _, problem := range problems {
			t.Errorf("the browser reports: %s", problem)
		}
	}

	plugin.Signal(syscall.SIGINT)
	plugin.WantExit(0)
	if b, ok := page.(*browser); ok {
		wait(t, b, "This page is not updated any more: kubectl scm dashboard does not answer")
	}
}

// checkFirstScreen opens the first page again, in a browser, and checks how much it loads.
func checkFirstScreen(t *testing.T, r reader, url string) {
	t.Helper()
	b, ok := r.(*browser)
	if !ok {
		return // package dashboard tests the same without a browser
	}
	b.seen()
	must(t, b.open(url))
	wait(t, b, "All is well", "Keys in the queue") // with its plots
	_, requests, bytes := b.seen()
	t.Logf("The first screen takes %d requests and %d bytes.", len(requests), bytes)
	if len(requests) > 8 || bytes > 150_000 {
		t.Errorf("the first screen takes %d requests and %d bytes, want at most 8 and 150000: %s", len(requests), bytes, strings.Join(requests, "\n"))
	}
}

// checkDark checks that the page is dark for those who prefer that.
func checkDark(t *testing.T, b *browser) {
	t.Helper()
	background, err := b.dark()
	must(t, err)
	var red, green, blue int
	if _, err := fmt.Sscanf(background, "rgb(%d, %d, %d)", &red, &green, &blue); err != nil || red+green+blue > 150 {
		t.Errorf("the background in dark mode is %s, %v", background, err)
	}
	b.screenshot("dashboard-dark.png")
}

func screenshot(r reader, name string) {
	if b, ok := r.(*browser); ok {
		b.screenshot(name)
	}
}

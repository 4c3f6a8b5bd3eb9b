// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// guarded are the pages that need authentication, with the method of the request.
var guarded = map[string]string{
	"/metrics": http.MethodGet, "/metrics/slis": http.MethodGet,
	"/flagz": http.MethodGet, "/statusz": http.MethodGet,
	"/debug/pprof/": http.MethodGet, "/debug/pprof/goroutine": http.MethodGet,
	"/debug/controllers": http.MethodGet,
	"/debug/flags/v":     http.MethodPut,
}

// TestFaultAuthenticationUnavailable requests each page as each caller while the API server,
// which authenticates them, is unavailable. Only the probes answer, and /metrics to a client
// certificate whose permission is cached.
func TestFaultAuthenticationUnavailable(t *testing.T) {
	t.Parallel()
	l := framework.NewIsolated(t)
	link := clustertest.StartLink(t, framework.Cluster())
	kubeconfig := framework.Kubeconfig(t, func(dir string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		cluster.Server = link.URL()
		user.TokenFile = dir + "/token"
		framework.ReplaceFile(t, user.TokenFile, []byte(l.Token(t, nil)))
	})
	authority := framework.NewAuthority(t, "scrapers")
	l.Start(t, kubeconfig, "--controllers=status-aggregator", "--client-ca-file="+authority.File(t), "--authorization-webhook-cache-authorized-ttl=1h")
	admin := framework.DebuggerToken(t, l.Namespace)
	tokens := map[string]string{"nobody": "", "a stranger": "nonsense", "an expired token": framework.Resign(t, admin, expired), "a user without the role": l.Token(t, nil), "an admin": admin}
	l.GetPage("/metrics", admin, http.StatusOK)
	// A certificate of the same user, whose permission is cached by now. So is that of the token, which
	// the API server would have to authenticate, too.
	scraper := authority.Sign(t, "system:serviceaccount:"+l.Namespace+":debugger", time.Now().Add(time.Hour)).Load(t)
	if code, body, err := l.GetWith(t.Context(), scraper, "/metrics"); err != nil || code != http.StatusOK {
		t.Fatalf("/metrics with a client certificate: %d %.200s, %v", code, body, err)
	}
	link.Hold(clustertest.Both)
	gone := time.Now()
	// Earlier decisions are cached for some seconds.
	clustertest.WaitUntil(t, "cached decisions have expired", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if code, _, err := l.GetAs(ctx, admin, "/metrics"); err == nil && code == http.StatusOK {
			return fmt.Errorf("an admin may still read the metrics")
		}
		return nil
	})
	forgotten := time.Since(gone)
	probes := probePage(l, "/livez")
	answers := askForPages(t, l, tokens)
	if code, body, err := l.GetWith(t.Context(), scraper, "/metrics"); err != nil || code != http.StatusOK {
		t.Errorf("/metrics with a client certificate during the outage: %d %.200s, %v", code, body, err)
	}
	n, slowest := probes()
	link.Release()
	link.Cut()
	l.WaitRenewal(time.Now())
	if code, body, err := l.GetAs(t.Context(), admin, "/metrics"); err != nil || code != http.StatusOK {
		t.Errorf("/metrics as an admin after the API server is back: %d %.200s, %v", code, body, err)
	}
	l.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D13", Fault: "the API server, which authorizes callers of the metrics, does not answer",
		Ours: fmt.Sprintf("%d pages, 5 callers: correct while it answers; %s after it is gone no page is served, except /metrics to a client certificate whose permission is cached: %v; %d probes answered during the outage, the slowest in %d ms",
			len(guarded), framework.Seconds(forgotten), answers, n, slowest.Milliseconds()),
		Peer: "none: kube-controller-manager uses the same library",
	})
}

// askForPages requests each page as each caller concurrently, checks that all requests are
// rejected, and counts the answers.
func askForPages(t *testing.T, l *framework.Isolated, tokens map[string]string) map[string]int {
	t.Helper()
	answers := map[string]int{}
	var mutex sync.Mutex
	var asking sync.WaitGroup
	for path, method := range guarded {
		for who, token := range tokens {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				code, body, err := l.DoAs(ctx, method, token, path, "2")
				mutex.Lock()
				defer mutex.Unlock()
				switch {
				case ctx.Err() != nil:
					t.Errorf("%s %s as %s got no answer while the API server is unavailable", method, path, who)
				case err != nil:
					answers["the connection was closed"]++
				case code < 400:
					t.Errorf("%s %s as %s: status %d while the API server is unavailable: %.200s", method, path, who, code, body)
				default:
					answers[fmt.Sprint(code)]++
				}
			})
		}
	}
	asking.Wait()
	return answers
}

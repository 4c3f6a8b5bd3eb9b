// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestDashboardKeepsConnection checks that the dashboard reads many reports of the leader's Pod through one
// port-forward and with one token.
func TestDashboardKeepsConnection(t *testing.T) {
	_, host, node := startLeader(t)
	standForReplica(t, node, host)
	began := time.Now()
	p := framework.StartProgram(t, framework.Plugin(), "dashboard", "--kubeconfig="+framework.Cluster().Kubeconfig)
	p.WaitLog("\n")
	page := strings.TrimPrefix(strings.TrimSpace(p.Log.String()), "Dashboard: ")

	reports := map[string]bool{} // by the times when they were read
	pattern := regexp.MustCompile(`(?s)<section id="controllers".*>foo-controller</a>.*>Running<.*?<p class="fresh">Read <time datetime="([^"]+)"`)
	clustertest.WaitUntil(t, "the dashboard has read five reports", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		match := pattern.FindStringSubmatch(string(content))
		if match == nil {
			return fmt.Errorf("no report in\n%s", content)
		}
		if reports[match[1]] = true; len(reports) < 5 {
			return fmt.Errorf("it has read %d reports", len(reports))
		}
		return nil
	})
	p.Signal(syscall.SIGINT)
	p.WantExit(0)

	// Each connection has a token of its own.
	tokens := framework.Audit(t, func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.After(began) && strings.HasPrefix(event.UserAgent, framework.PluginName+"/") &&
			event.ObjectRef.Subresource == "token"
	})
	if len(tokens) != 1 {
		t.Errorf("it connected %d times, want once", len(tokens))
	}
}

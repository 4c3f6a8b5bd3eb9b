// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// report is what preflight -o json prints.
type report struct {
	Checks []struct{ Check, Result, Details string }
	failed bool // the exit code was 1
}

// with returns the details of the checks with the result.
func (r report) with(result string) []string {
	var details []string
	for _, c := range r.Checks {
		if c.Result == result {
			details = append(details, c.Details)
		}
	}
	return details
}

// granted adds up the permissions in the lines "all 17 granted".
func (r report) granted(t *testing.T) int {
	t.Helper()
	sum := 0
	for _, c := range r.Checks {
		if !strings.HasPrefix(c.Check, "permissions: ") || c.Result != "OK" {
			continue
		}
		var count int
		if _, err := fmt.Sscanf(c.Details, "all %d granted", &count); err != nil {
			t.Errorf("%q: %v", c.Details, err)
		}
		sum += count
	}
	return sum
}

// preflight runs the daemon's subcommand.
func preflight(ctx context.Context, kubeconfig string, flags ...string) (report, error) {
	command := manager.NewCommand(app.Program())
	var out strings.Builder
	command.SetOut(&out)
	command.SetArgs(append([]string{"preflight", "-o", "json", "--kubeconfig=" + kubeconfig, "--leader-elect-resource-namespace=" + framework.DaemonName}, flags...))
	command.SilenceErrors = true
	err := command.ExecuteContext(ctx)
	r := report{failed: err != nil}
	if wrong := json.Unmarshal([]byte(out.String()), &r); wrong != nil {
		return r, fmt.Errorf("%w: %w: %q", wrong, err, out.String())
	}
	return r, nil
}

// waitPreflight runs preflight until its failures are as wanted: the API server grants new
// rules with a delay.
func waitPreflight(t *testing.T, kubeconfig string, want []string, flags ...string) report {
	t.Helper()
	var last report
	clustertest.WaitUntil(t, fmt.Sprintf("preflight reports the failures %q", want), func(ctx context.Context) (err error) {
		began := time.Now()
		if last, err = preflight(ctx, kubeconfig, flags...); err != nil {
			return err
		}
		failures := last.with("FAIL")
		for i := range failures {
			failures[i], _, _ = strings.Cut(failures[i], ", needed by ")
		}
		if !slices.Equal(failures, want) || last.failed != (len(want) > 0) {
			return fmt.Errorf("failed: %t, with %q", last.failed, failures)
		}
		t.Logf("all checks took %v", time.Since(began).Round(time.Millisecond))
		return nil
	})
	return last
}

// TestPreflightNamesEachMissingRule runs preflight with all rules of the manifests, and once
// without each of them.
func TestPreflightNamesEachMissingRule(t *testing.T) {
	for _, tc := range []struct {
		name   string
		served string
		rules  int
	}{
		{"one namespace", metav1.NamespaceDefault, 29},
		{"all namespaces", "", 29},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.served == "" {
				clustertest.Long(t)
			}
			ns := framework.NewNamespace(t)
			rules := daemonRules(t, tc.served)
			if len(rules) != tc.rules {
				t.Errorf("the manifests have %d rules, want %d", len(rules), tc.rules)
			}
			whole := waitPreflight(t, grantedAccount(t, ns, "whole", rules), nil, "--namespace="+tc.served)
			needed := len(slices.DeleteFunc(slices.Clone(rules), scopedRule.isOptional))
			if got := whole.granted(t); got != needed {
				t.Errorf("%d permissions granted, want %d: %v", got, needed, whole.Checks)
			}
			for i, missing := range rules {
				t.Run(strings.TrimPrefix(missing.String(), "may not "), func(t *testing.T) {
					kubeconfig := grantedAccount(t, ns, fmt.Sprintf("without-%d", i), slices.Delete(slices.Clone(rules), i, i+1))
					if missing.isOptional() {
						wantDetails(t, waitPreflight(t, kubeconfig, nil), "WARN", missing.String()+", so the annotation ")
						return
					}
					waitPreflight(t, kubeconfig, []string{missing.String()}, "--namespace="+tc.served)
				})
			}
		})
	}
}

// TestPreflightOfHealthyCluster checks the other checks, as the daemon and as an admin.
func TestPreflightOfHealthyCluster(t *testing.T) {
	ns := framework.NewNamespace(t)
	daemon := grantedAccount(t, ns, "daemon", daemonRules(t, ""))
	r := waitPreflight(t, daemon, nil)
	wantDetails(t, r, "OK", "as system:serviceaccount:"+ns+":daemon", "all 5 served", "a leader writes for 11s after a renewal")
	for _, kubeconfig := range []string{daemon, framework.Cluster().Kubeconfig} {
		r := waitPreflight(t, kubeconfig, nil)
		if others := append(r.with("WARN"), r.with("SKIP")...); len(others) > 0 {
			t.Errorf("warnings and skipped checks %q, want none", others)
		}
	}
}

// wantDetails checks that each text is in the details of a check with the result.
func wantDetails(t *testing.T, r report, result string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(r.with(result), func(details string) bool { return strings.Contains(details, text) }) {
			t.Errorf("no %s with %q: %v", result, text, r.Checks)
		}
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStatusesAreJudged checks that hack/tools/kstatus finds each kind of wrong status.
func TestStatusesAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		observed   int
		conditions string // type and status of each condition
		want       string
	}{
		"ready":                     {2, "Ready=True", "agrees with 1 of 1 statuses"},
		"reconciling":               {2, "Ready=False Reconciling=True", "agrees with 1 of 1 statuses"},
		"stalled":                   {2, "Ready=False Stalled=True", "agrees with 1 of 1 statuses"},
		"of others":                 {2, "Audited=False Ready=True", "agrees with 1 of 1 statuses"},
		"a condition that is False": {2, "Ready=True Stalled=False", "Stalled is present but not True"},
		"no Ready":                  {2, "Reconciling=True", "no condition Ready"},
		"ready for another spec":    {1, "Ready=True", "kstatus says InProgress"},
		"ready and stalled":         {2, "Stalled=True Ready=True", "kstatus says Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := regexp.MustCompile(`(\w+)=(\w+)`).ReplaceAllString(strings.ReplaceAll(test.conditions, " ", ","), `{"type":"$1","status":"$2","reason":"R","message":"m"}`)
			object := fmt.Sprintf(`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{"name":"a","namespace":"b","generation":2},"status":{"observedGeneration":%d,"conditions":[%s]}}`,
				test.observed, conditions)
			log := filepath.Join(t.TempDir(), "audit.log")
			event := fmt.Sprintf(`{"stage":"ResponseComplete","userAgent":"x/foo-controller","objectRef":{"resource":"foos","subresource":"status"},"responseStatus":{"code":200},"responseObject":%s}`+"\n", object)
			if err := os.WriteFile(log, []byte(event), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := judgeStatuses(log)
			if (err == nil) != strings.HasPrefix(test.want, "agrees") || !strings.Contains(out, test.want) {
				t.Errorf("%q, %v, want %q", out, err, test.want)
			}
		})
	}
}

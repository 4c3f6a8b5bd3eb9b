// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/live"
)

func TestVerbosityChangesWhileProcessRuns(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(logs.NewOptions(), fs)
	setting, ok := fs.Lookup("v").Value.(live.Setting)
	if !ok {
		t.Fatal("--v is not a live setting")
	}
	for _, invalid := range []string{"", "-1", "two", "4294967296"} {
		if _, err := setting.Prepare(invalid); err == nil {
			t.Errorf("%q was accepted", invalid)
		}
	}
	for _, test := range []struct {
		text string
		want klog.Level
	}{{"4", 4}, {"9", MaxVerbosity}, {"0", 0}} {
		commit, err := setting.Prepare(test.text)
		if err != nil {
			t.Fatal(err)
		}
		commit()
		if !klog.V(test.want).Enabled() || klog.V(test.want+1).Enabled() || setting.String() != test.text {
			t.Errorf("after --v=%s the verbosity is not %d, or the flag is %s", test.text, test.want, setting)
		}
	}
}

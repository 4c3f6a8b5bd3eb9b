// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"encoding/json"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// TestArgoCDHealth runs the scripts of the example as Argo CD does, on the statuses that objects have.
func TestArgoCDHealth(t *testing.T) {
	var settings corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(read(t, root+"manifests/examples/gitops/argocd/health.yaml")), &settings); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds(t) {
		script := settings.Data["resource.customizations.health."+kind.group+"_"+kind.name]
		for what, test := range map[string]struct {
			observed int64
			is       string // the condition that is True
			want     string
		}{
			"new":         {0, "", "Progressing"},
			"outdated":    {1, "Ready", "Progressing"},
			"ready":       {2, "Ready", "Healthy"},
			"reconciling": {2, "Reconciling", "Progressing"},
			"stalled":     {2, "Stalled", "Degraded"},
			"unknown":     {2, "Unknown", "Progressing"},
		} {
			status := workloadv1alpha1.Status{ObservedGeneration: test.observed, Conditions: []metav1.Condition{
				{Type: "Ready", Status: "False", Reason: "R", Message: "m"}, {Type: test.is, Status: "True", Reason: "R", Message: "m"},
			}}
			if got := health(t, script, map[string]any{"metadata": map[string]any{"generation": 2}, "status": status}); got != test.want {
				t.Errorf("a %s that is %s is %q, want %q", kind.name, what, got, test.want)
			}
		}
		if got := health(t, script, map[string]any{"metadata": map[string]any{"generation": 2}}); got != "Progressing" {
			t.Errorf("a %s without a status is %q, want it to be progressing", kind.name, got)
		}
	}
}

// health runs a script on an object, and returns the status that it returns.
func health(t *testing.T, script string, object any) string {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", toLua(t, state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v, want a table", state.Get(-1))
	}
	return result.RawGetString("status").String()
}

// toLua returns a value in the form that its JSON has in Lua.
func toLua(t *testing.T, state *lua.LState, value any) lua.LValue {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	var convert func(any) lua.LValue
	convert = func(value any) lua.LValue {
		table := state.NewTable()
		switch value := value.(type) {
		case string:
			return lua.LString(value)
		case float64:
			return lua.LNumber(value)
		case bool:
			return lua.LBool(value)
		case []any:
			for _, element := range value {
				table.Append(convert(element))
			}
		case map[string]any:
			for key, element := range value {
				table.RawSetString(key, convert(element))
			}
		default:
			return lua.LNil
		}
		return table
	}
	return convert(plain)
}

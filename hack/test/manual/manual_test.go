// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

const staging = "../../../staging/src/samplecontroller.io/"

// TestManualHasAllStates looks for each state of a controller in the table of the manual.
func TestManualHasAllStates(t *testing.T) {
	const source = staging + "controller-manager/internal/supervisor/status.go"
	const page = "manifests/docs/operate.md"
	text := read(t, root+page)
	for _, word := range constants(t, source, 7) {
		if !strings.Contains(text, "| `"+word+"` |") {
			t.Errorf("%s has no row for the state `%s` of %s", page, word, source)
		}
	}
}

// TestReasonsAreDocumented compares the condition of each reason with the table of the
// manual, which has a row for each reason. No other page may have such rows: two tables
// would contradict each other one day.
func TestReasonsAreDocumented(t *testing.T) {
	want := map[string]string{}
	for _, word := range constants(t, staging+"api/workload/v1alpha1/conditions.go", 11) {
		if !slices.Contains(conditions, word) {
			want[word] = workload.ConditionFor(word)
		}
	}
	row := regexp.MustCompile("(?m)^\\| (?:`(Ready|Reconciling|Stalled)` )?\\| `([A-Z]\\w+)` \\|")
	for _, file := range pageFiles(t) {
		got, condition := map[string]string{}, ""
		for _, match := range row.FindAllStringSubmatch(read(t, root+file), -1) {
			condition = cmp.Or(match[1], condition)
			if former, twice := got[match[2]]; twice {
				t.Errorf("%s has %s under %s and under %s", file, match[2], former, condition)
			}
			got[match[2]] = condition
		}
		if file != "manifests/docs/troubleshooting.md" {
			if len(got) > 0 {
				t.Errorf("%s has rows for reasons, which belong into manifests/docs/troubleshooting.md: %v", file, got)
			}
		} else if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("conditions by reason in %s (-want +got):\n%s", file, diff)
		}
	}
	for reason := range want {
		if cluster.NextStep(reason) == "" {
			t.Errorf("kubectl scm has no next step for the reason %s", reason)
		}
	}
}

// TestReasonsAreCounted compares the reasons of the API with those that the metric of objects
// counts.
func TestReasonsAreCounted(t *testing.T) {
	counted := map[string]string{}
	for _, state := range workload.States() {
		counted[state.Reason] = state.Condition
	}
	for _, word := range constants(t, staging+"api/workload/v1alpha1/conditions.go", 11) {
		if !slices.Contains(conditions, word) && counted[word] != workload.ConditionFor(word) {
			t.Errorf("objects with reason %s are counted as %q, want %q", word, counted[word], workload.ConditionFor(word))
		}
	}
}

var conditions = []string{workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionReconciling,
	workloadv1alpha1.ConditionStalled, workloadv1alpha1.ConditionPaused}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// constants returns the string constants that a file declares. The test fails if there are
// fewer than least.
func constants(t *testing.T, file string, least int) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, declaration := range parsed.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.CONST {
			ast.Inspect(d, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if word, err := strconv.Unquote(literal.Value); err == nil {
						all = append(all, word)
					}
				}
				return true
			})
		}
	}
	if len(all) < least {
		t.Errorf("%s has %d constants, want at least %d", file, len(all), least)
	}
	return all
}

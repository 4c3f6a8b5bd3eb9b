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

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

const staging = "../../staging/src/samplecontroller.io/"

// TestManualHasAllStates looks for each state of a controller in a table of the manual.
func TestManualHasAllStates(t *testing.T) {
	const source = staging + "controller-manager/supervisor/status.go"
	text := read(t, "../../manifests/README.md")
	for _, word := range constants(t, source, 7) {
		if !strings.Contains(text, "| `"+word+"` |") {
			t.Errorf("manifests/README.md has no row for the state `%s` of %s", word, source)
		}
	}
}

// TestReasonsAreDocumented compares the condition of each reason with the tables of the
// manual, which has a row for each reason, and of the README, which has one for each
// condition.
func TestReasonsAreDocumented(t *testing.T) {
	want := map[string]string{}
	for _, word := range constants(t, staging+"api/workload/v1alpha1/conditions.go", 11) {
		if !slices.Contains(conditions, word) {
			want[word] = workload.ConditionFor(word)
		}
	}
	for file, row := range map[string]*regexp.Regexp{
		"manifests/README.md": regexp.MustCompile("(?m)^\\| (?:`(Ready|Reconciling|Stalled)` )?\\| (`[A-Z]\\w+`) \\|"),
		"README.md":           regexp.MustCompile("(?m)^\\| `(Ready|Reconciling|Stalled)` \\| .* \\| (.*) \\|$"),
	} {
		got, condition := map[string]string{}, ""
		for _, match := range row.FindAllStringSubmatch(read(t, "../../"+file), -1) {
			condition = cmp.Or(match[1], condition)
			for reason := range strings.SplitSeq(match[2], ", ") {
				got[strings.Trim(reason, "`")] = condition
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("conditions by reason in %s (-want +got):\n%s", file, diff)
		}
	}
}

var conditions = []string{workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionReconciling, workloadv1alpha1.ConditionStalled}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// constants returns the strings that a file declares as constants. The test fails if it
// finds fewer than least.
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

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operations returns the operations between two JSON documents.
func operations(t testing.TB, from, to string, sparse bool) string {
	t.Helper()
	var before, after map[string]any
	for _, document := range []struct {
		text string
		into *map[string]any
	}{{from, &before}, {to, &after}} {
		decoder := json.NewDecoder(strings.NewReader(document.text))
		decoder.UseNumber()
		if err := decoder.Decode(document.into); err != nil {
			t.Fatal(err)
		}
	}
	d := differ{sparse: sparse}
	d.members("", before, after)
	var lines []string
	for _, o := range d.ops {
		line := strings.Join(strings.Fields(o.Op+" "+o.From+" "+o.Path), " ")
		if o.Op == "add" || o.Op == "test" {
			value, err := json.Marshal(o.Value)
			if err != nil {
				t.Fatal(err)
			}
			line += " " + string(value)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestOperations(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		sparse   bool
		want     string
	}{
		"nothing": {
			from: `{"a":1,"b":{"c":[{"name":"x"}]}}`,
			to:   `{"b":{"c":[{"name":"x"}]},"a":1}`,
		},
		"leaf": {
			from: `{"a":{"b":1,"c":2}}`,
			to:   `{"a":{"b":3,"c":2}}`,
			want: `add /a/b 3`,
		},
		"absent leaf":   {from: `{"a":{"b":1}}`, to: `{"a":{"b":1,"c":2}}`, want: `add /a/c 2`},
		"absent parent": {from: `{}`, to: `{"a":{"b":{"c":1}}}`, want: `add /a {"b":{"c":1}}`},
		"removed":       {from: `{"a":{"b":1,"c":2}}`, to: `{"a":{"b":1}}`, want: `remove /a/c`},
		"null is absent": {
			from: `{"a":null,"b":1,"c":null}`,
			to:   `{"b":null,"c":2}`,
			want: `remove /b; add /c 2`,
		},
		"false and empty": {
			from: `{"a":true,"b":"x","c":[1]}`,
			to:   `{"a":false,"b":"","c":[]}`,
			want: `add /a false; add /b ""; add /c []`,
		},
		"escaped": {
			from: `{"l":{"a/b~c":"1"}}`,
			to:   `{"l":{"a/b~c":"2"}}`,
			want: `add /l/a~1b~0c "2"`,
		},
		"large number": {
			from: `{"a":9007199254740993}`,
			to:   `{"a":9007199254740992}`,
			want: `add /a 9007199254740992`,
		},
		"another type": {
			from: `{"a":{"b":1},"c":[{"name":"x"}]}`,
			to:   `{"a":"80%","c":{}}`,
			want: `add /a "80%"; add /c {}`,
		},

		"zero parent, stored": {
			from: `{"status":{"n":0}}`,
			to:   `{"status":{"n":1}}`,
			want: `add /status/n 1`,
		},
		"zero parent, maybe absent": {
			from:   `{"status":{"n":0,"p":{}}}`,
			to:     `{"status":{"n":1,"p":{}}}`,
			sparse: true,
			want:   `add /status {"n":1,"p":{}}`,
		},
		"zero parent of a parent": {
			from:   `{"s":{"p":{},"n":2}}`,
			to:     `{"s":{"p":{"a":1},"n":2}}`,
			sparse: true,
			want:   `add /s/p {"a":1}`,
		},
		"zero key of a list element": {
			from:   `{"l":[{"port":1,"protocol":""}]}`,
			to:     `{"l":[{"port":1,"protocol":"","a":1}]}`,
			sparse: true,
			want:   `test /l/0/port 1; add /l/0/a 1`,
		},

		"list of scalars": {
			from: `{"l":["a","b"]}`,
			to:   `{"l":["a","c"]}`,
			want: `add /l ["a","c"]`,
		},
		"empty list": {
			from: `{"l":[]}`,
			to:   `{"l":[{"name":"x"}]}`,
			want: `add /l [{"name":"x"}]`,
		},
		"element": {
			from: `{"l":[{"name":"x"},{"name":"y","a":1}]}`,
			to:   `{"l":[{"name":"x"},{"name":"y","a":2}]}`,
			want: `test /l/1/name "y"; add /l/1/a 2`,
		},
		"element removed": {
			from: `{"l":[{"name":"x"},{"name":"y"},{"name":"z"}]}`,
			to:   `{"l":[{"name":"y"}]}`,
			want: `test /l/2/name "z"; remove /l/2; test /l/0/name "x"; remove /l/0`,
		},
		"element added": {
			from: `{"l":[{"name":"x"}]}`,
			to:   `{"l":[{"name":"w"},{"name":"x"},{"name":"y"}]}`,
			want: `add /l/0 {"name":"w"}; add /l/2 {"name":"y"}`,
		},
		"element moved": {
			from: `{"l":[{"name":"x"},{"name":"y"}]}`,
			to:   `{"l":[{"name":"y","a":1},{"name":"x"}]}`,
			want: `move /l/1 /l/0; test /l/0/name "y"; add /l/0/a 1`,
		},
		"element replaced": {
			from: `{"l":[{"name":"x","a":1}]}`,
			to:   `{"l":[{"name":"y","a":1}]}`,
			want: `test /l/0/name "x"; remove /l/0; add /l/0 {"a":1,"name":"y"}`,
		},
		"names that repeat": {
			from: `{"l":[{"name":"x","mountPath":"/a"},{"name":"x","mountPath":"/b"}]}`,
			to:   `{"l":[{"name":"x","mountPath":"/a"},{"name":"x","mountPath":"/b","readOnly":true}]}`,
			want: `test /l/1/mountPath "/b"; add /l/1/readOnly true`,
		},
		"ports by protocol": {
			from: `{"l":[{"port":53,"protocol":"UDP"}]}`,
			to:   `{"l":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"}]}`,
			want: `add /l/1 {"port":53,"protocol":"TCP"}`,
		},
		"ports and a default": {
			from: `{"l":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53}]}`,
			to:   `{"l":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"hostPort":1}]}`,
			want: `test /l/1/containerPort 53; add /l/1/hostPort 1`,
		},
		"without a key": {
			from: `{"l":[{"a":1},{"a":2},{"a":3}]}`,
			to:   `{"l":[{"a":1},{"a":4},{"a":3}]}`,
			want: `remove /l/1; add /l/1 {"a":4}`,
		},
		"equal elements": {
			from: `{"l":[{"a":1},{"a":1}]}`,
			to:   `{"l":[{"a":1},{"a":2}]}`,
			want: `add /l [{"a":1},{"a":2}]`,
		},
		"list in an element": {
			from: `{"l":[{"name":"x","p":[{"name":"q","v":1}]}]}`,
			to:   `{"l":[{"name":"x","p":[{"name":"q","v":2}]}]}`,
			want: `test /l/0/name "x"; test /l/0/p/0/name "q"; add /l/0/p/0/v 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, operations(t, test.from, test.to, test.sparse)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongListIsSetAsAWhole(t *testing.T) {
	list := func(value int) string {
		elements := make([]string, maxListEdits/2+1)
		for i := range elements {
			elements[i] = fmt.Sprintf(`{"name":"%d","a":%d}`, i, value)
		}
		return `{"l":[` + strings.Join(elements, ",") + `]}`
	}
	if got := operations(t, list(1), list(2), false); strings.Contains(got, "; ") || !strings.HasPrefix(got, "add /l [") {
		t.Errorf("%d operations, want one that sets the list", strings.Count(got, "; ")+1)
	}
}

// TestZerosOfStatus has a stored status that lacks what is zero. Its first write adds that, others do not.
func TestZerosOfStatus(t *testing.T) {
	status := func(generation, replicas string) map[string]any {
		return map[string]any{"status": map[string]any{
			"observedGeneration": json.Number(generation), "replicas": json.Number(replicas), "ready": json.Number("0"),
		}}
	}
	for name, test := range map[string]struct {
		from, to map[string]any
		want     string
	}{
		"first write": {status("-1", "0"), status("1", "0"), `[{"op":"add","path":"/status/observedGeneration","value":1},` +
			`{"op":"add","path":"/status/ready","value":0},{"op":"add","path":"/status/replicas","value":0}]`},
		"later write": {status("1", "0"), status("1", "2"), `[{"op":"add","path":"/status/replicas","value":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			d := differ{sparse: true}
			d.members("", test.from, test.to)
			d.zeros(test.from, test.to)
			if got, err := json.Marshal(d.ops); err != nil || string(got) != test.want {
				t.Errorf("patch %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
)

const badMessage = "spec.name: array where string is expected"

func TestDecode(t *testing.T) {
	good, bad := thing("a", "1", goodSpec), thing("b", "2", badSpec)
	for name, test := range map[string]struct {
		data string
		want runtime.Object
	}{
		"a good object": {good, decoded("a", "1")},
		"a bad object":  {bad, placeholderFor("b", "2", badMessage)},
		"an empty list": {list(), decodedList()},
		"a good list":   {list(good, thing("c", "3", goodSpec)), decodedList(decoded("a", "1"), decoded("c", "3"))},
		"one bad of three": {
			list(good, bad, thing("c", "3", goodSpec)),
			decodedList(decoded("a", "1"), placeholderFor("b", "2", badMessage), decoded("c", "3")),
		},
		"first and last are bad for different reasons": {
			list(bad, good, thing("c", "3", `{"name":"c","replicas":"three"}`)),
			decodedList(placeholderFor("b", "2", badMessage), decoded("a", "1"), placeholderFor("c", "3", "spec.replicas: string where int32 is expected")),
		},
		"all bad": {list(bad, bad), decodedList(placeholderFor("b", "2", badMessage), placeholderFor("b", "2", badMessage))},
		"items without a type, as built-in resources have": {
			strings.ReplaceAll(list(good, bad), `"apiVersion":"example.com/v1","kind":"Thing",`, ""),
			&ThingList{ListMeta: metav1.ListMeta{ResourceVersion: "100", RemainingItemCount: ptr.To[int64](7)},
				Items: []Thing{*decoded("a", "1"), *placeholderFor("b", "2", badMessage)}},
		},
		"an object with items like a list": {
			strings.TrimSuffix(good, "}") + `,"items":[{"size":"two"}]}`,
			placeholderFor("a", "1", "items.size: string where int32 is expected"),
		},
		"a bookmark": {
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"resourceVersion":"7","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"name":""}}`,
			&Thing{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7",
				Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}},
		},
		"a Status": {
			`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","reason":"Expired","code":410}`,
			&metav1.Status{Status: "Failure", Reason: "Expired", Code: 410},
		},
		"partly bad metadata": {
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b","namespace":"default","uid":"uid-b","resourceVersion":"2","generation":2,` +
				`"labels":["l"],"annotations":"none","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":` + goodSpec + `}`,
			&Thing{ObjectMeta: metav1.ObjectMeta{
				Name: "b", Namespace: "default", UID: "uid-b", ResourceVersion: "2", Generation: 2,
				DeletionTimestamp: decoded("", "").Spec.Since,
				Annotations:       map[string]string{AnnotationDecodeError: "metadata.labels: array where map[string]string is expected"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, kind, err := tolerantDecoder().Decode([]byte(test.data), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected object (-want +got):\n%s", diff)
			}
			if kind == nil || !strings.Contains(test.data, fmt.Sprintf("%q", kind.Kind)) {
				t.Errorf("kind = %v", kind)
			}

			// Decoding into an object, as lists are read, leaves none of its previous content.
			var into runtime.Object
			switch got.(type) {
			case *Thing:
				into = &Thing{}
			case *ThingList:
				into = &ThingList{}
			default:
				return
			}
			got, _, err = tolerantDecoder().Decode([]byte(test.data), nil, into)
			if err != nil {
				t.Fatal(err)
			}
			if got != into {
				t.Error("the object to decode into was not used")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected target object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherDecodeErrorsRemain(t *testing.T) {
	bad := thing("b", "2", badSpec)
	for name, data := range map[string]string{
		"nothing":                       ``,
		"garbage":                       `<html>502 Bad Gateway</html>`,
		"cut off":                       list(bad)[:200],
		"not an object":                 `["a"]`,
		"null":                          `null`,
		"no kind":                       `{"metadata":{"name":"b","resourceVersion":"2"},"spec":{"name":[]}}`,
		"an unknown kind":               strings.ReplaceAll(bad, `"Thing"`, `"Other"`),
		"an unknown list":               strings.ReplaceAll(list(bad), `"ThingList"`, `"OtherList"`),
		"no metadata":                   `{"apiVersion":"example.com/v1","kind":"Thing","spec":{"name":[]}}`,
		"metadata not an object":        `{"apiVersion":"example.com/v1","kind":"Thing","metadata":"b","spec":{"name":[]}}`,
		"an object without name":        `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":1,"resourceVersion":"2"}}`,
		"an object without version":     `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b","resourceVersion":2}}`,
		"a list with bad metadata":      strings.Replace(list(bad), `7`, `[]`, 1),
		"items not a list":              strings.Replace(list(), `[]`, `{}`, 1),
		"item not an object":            list(bad, `1`),
		"a list with a nameless object": list(bad, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":[],"resourceVersion":"2"}}`),
		"a bad Status":                  `{"apiVersion":"v1","kind":"Status","metadata":{},"status":1}`,
		"protobuf":                      "k8s\x00\x0a\x02",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, want := strictDecoder().Decode([]byte(data), nil, nil)
			if want == nil {
				t.Fatal("it was decoded")
			}
			for _, into := range []runtime.Object{nil, &ThingList{}} {
				_, _, want := strictDecoder().Decode([]byte(data), nil, into)
				_, _, got := tolerantDecoder().Decode([]byte(data), nil, into)
				if (got == nil) != (want == nil) || want != nil && got.Error() != want.Error() {
					t.Errorf("into %T: error = %v, want %v", into, got, want)
				}
			}
		})
	}
}

// If the scheme does not know the type, the decoder cannot tell which item is at fault.
func TestUnregisteredListRemainsError(t *testing.T) {
	type otherList struct{ ThingList }
	data := list(thing("a", "1", goodSpec), thing("b", "2", badSpec))
	data = strings.ReplaceAll(data, "ThingList", "OtherList")
	if _, _, err := tolerantDecoder().Decode([]byte(strings.ReplaceAll(data, badSpec, goodSpec)), nil,
		&otherList{}); err != nil {
		t.Fatalf("a good list: %v", err)
	}
	if obj, _, err := tolerantDecoder().Decode([]byte(data), nil, &otherList{}); err == nil {
		t.Errorf("decoded as %+v", obj)
	}
}

func TestConcurrentDecoding(t *testing.T) {
	decoder := tolerantDecoder()
	data := []byte(list(thing("a", "1", goodSpec), thing("b", "2", badSpec), thing("c", "3", goodSpec)))
	want := decodedList(decoded("a", "1"), placeholderFor("b", "2", badMessage), decoded("c", "3"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := runtime.Decode(decoder, data)
				if diff := cmp.Diff(runtime.Object(want), got); err != nil || diff != "" {
					t.Errorf("error %v, unexpected list (-want +got):\n%s", err, diff)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzDecode checks that valid data decodes as without the wrapper, and that repaired data
// has the same number of objects, with all valid ones decoded as usual.
func FuzzDecode(f *testing.F) {
	good, bad := thing("a", "1", goodSpec), thing("b", "2", badSpec)
	for _, seed := range []string{good, bad, list(), list(good, bad), list(bad, good, bad), `{"items":[]}`, `{"metadata":{"name":"a"}}`, `{"kind":"Thing"`, `null`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b","resourceVersion":"2","managedFields":[{"fieldsV1":{"f:a":{}}}],"labels":[]}}`} {
		f.Add([]byte(seed))
	}
	strict, tolerant := strictDecoder(), tolerantDecoder()
	f.Fuzz(func(t *testing.T, data []byte) {
		want, strictErr := runtime.Decode(strict, data)
		got, err := runtime.Decode(tolerant, data)
		if strictErr == nil {
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("error %v, decoded differently from the strict decoder (-want +got):\n%s", err, diff)
			}
			return
		}
		if err != nil {
			if err.Error() != strictErr.Error() {
				t.Fatalf("error = %v, want %v", err, strictErr)
			}
			return
		}
		marked := false
		switch got := got.(type) {
		case *Thing:
			marked = DecodeError(got) != nil
		case *ThingList:
			var raw struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := utiljson.Unmarshal(data, &raw); err != nil || len(raw.Items) != len(got.Items) {
				t.Fatalf("%d items, want %d (%v)", len(got.Items), len(raw.Items), err)
			}
			for i := range got.Items {
				if DecodeError(&got.Items[i]) != nil {
					marked = true
					continue
				}
				var want Thing
				if err := utiljson.Unmarshal(raw.Items[i], &want); err != nil {
					t.Fatalf("item %d is no placeholder, but cannot be decoded: %v", i, err)
				}
				if diff := cmp.Diff(want, got.Items[i]); diff != "" {
					t.Fatalf("item %d was decoded differently than alone (-want +got):\n%s", i, diff)
				}
			}
		}
		if !marked {
			t.Fatalf("no placeholder in %+v, which could not be decoded: %v", got, strictErr)
		}
	})
}

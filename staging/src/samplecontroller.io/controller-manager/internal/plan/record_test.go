// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// answers answers the requests in turn. An answer that is no object is 429, and asks to send the request again.
type answers []string

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := (*a)[0]
	*a = (*a)[1:]
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body))}
	if !strings.HasPrefix(body, "{") {
		response.StatusCode = http.StatusTooManyRequests
		response.Header.Set("Retry-After", "1")
	}
	return response, nil
}

// patched sends a patch as often as the API server asks for it, and returns the report and the codes of the answers.
func patched(t *testing.T, a answers) (report Report, codes []int) {
	t.Helper()
	var r Recorder
	ctx, end := r.Begin(t.Context(), "foo-controller", "foo-controller", "ns/foo")
	for len(a) > 0 {
		patch := request(t, "PATCH", "/apis/example.com/v1/namespaces/ns/foos/foo", nil).WithContext(ctx)
		response, err := r.Wrap("foo-controller")(&a).RoundTrip(patch)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, response.StatusCode)
	}
	end(false, nil)
	return r.Report(), codes
}

// TestThrottledRequests has an API server that asks to send the read before a write again, and then the write.
func TestThrottledRequests(t *testing.T) {
	const list = `{"apiVersion":"example.com/v1","kind":"FooList","items":[{"spec":{"a":1}}]}`
	r, codes := patched(t, answers{"later", list, "later", list, `{"apiVersion":"example.com/v1","kind":"Foo","spec":{"a":2}}`})
	if !slices.Equal(codes, []int{429, 429, 200}) || len(r.Changes) != 1 || r.Failed() {
		t.Errorf("answers %v, report %+v, want 429 twice, and then one change", codes, r)
	}
}

// TestLargeNumbers changes a number by less than a float64 can hold.
func TestLargeNumbers(t *testing.T) {
	r, _ := patched(t, answers{
		`{"apiVersion":"example.com/v1","kind":"FooList","items":[{"spec":{"count":9007199254740992}}]}`,
		`{"apiVersion":"example.com/v1","kind":"Foo","spec":{"count":9007199254740993}}`,
	})
	if len(r.Changes) != 1 || !strings.Contains(r.Changes[0].Before, "count: 9007199254740992") || !strings.Contains(r.Changes[0].After, "count: 9007199254740993") {
		t.Errorf("changes %#v, want a change of one", r.Changes)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"samplecontroller.io/controller-manager/internal/fakeapi"
)

// recorder is the transport of all clients of a program. It is below the gate and the write
// metrics, so it sees only the requests that are sent. It identifies a client by the end of
// its user agent.
type recorder struct {
	t       testing.TB
	next    http.RoundTripper
	rules   map[string][]rbacv1.PolicyRule // by name of the controller
	enabled []string

	mutex          sync.Mutex
	before         func(string, *http.Request) error
	writes, events []string
	reported       sets.Set[string]                       // failures of the test
	read           map[schema.GroupVersionResource]string // namespace and selector of an informer's last watch
	last           time.Time                              // time of the last request, except of the election
}

func newRecorder(t testing.TB, next http.RoundTripper) *recorder {
	return &recorder{t: t, next: next, rules: map[string][]rbacv1.PolicyRule{}, reported: sets.New[string](),
		read: map[schema.GroupVersionResource]string{}}
}

// take returns a list and empties it.
func (r *recorder) take(list *[]string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	taken := *list
	*list = nil
	return taken
}

func (r *recorder) setBefore(f func(string, *http.Request) error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.before = f
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	info, err := fakeapi.Requests.NewRequestInfo(q)
	if err != nil {
		return nil, err
	}
	client := q.UserAgent()[strings.LastIndex(q.UserAgent(), "/")+1:]
	if client == "leader-election" {
		return r.send(q)
	}
	defer r.note(info, client, q)
	if client != "events" && info.IsResourceRequest {
		r.check(client, info)
	}
	if slices.Contains([]string{"get", "list", "watch"}, info.Verb) || !info.IsResourceRequest {
		return r.send(q)
	}
	return r.write(q, info, client)
}

// send sends a request. It fails the test if the API server in memory does not support the request,
// because programs retry or ignore errors.
func (r *recorder) send(q *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(q)
	if err != nil || response.StatusCode != http.StatusNotImplemented {
		return response, err
	}
	var got written
	if err := got.readFrom(response); err != nil {
		return nil, err
	}
	r.fail("%s", got.Message)
	return response, nil
}

// fail fails the test, once for each text.
func (r *recorder) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.reported.Has(text) {
		r.reported.Insert(text)
		r.t.Errorf("%s", text)
	}
}

// note records the time of the last request, and what an informer reads.
func (r *recorder) note(info *request.RequestInfo, client string, q *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.last = time.Now()
	if client == "informers" && info.Verb == "watch" {
		r.read[resourceOf(info)] = info.Namespace + "?" + q.URL.Query().Get("labelSelector")
	}
}

func resourceOf(info *request.RequestInfo) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
}

// written has the fields that the recorder reads from written objects and responses.
type written struct {
	Metadata struct{ Name string }
	// These are fields of a Status or an Event.
	Reason              string
	Type, Message, Note string
	Source              struct{ Component string }
	ReportingController string
	ReportingComponent  string
}

// readFrom reads the body of a response, which can be read again.
func (w *written) readFrom(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	json.Unmarshal(body, w) // anything else has no name
	return nil
}

// write sends a write and records it.
func (r *recorder) write(q *http.Request, info *request.RequestInfo, client string) (*http.Response, error) {
	var sent, got written
	if q.Body != nil {
		body, err := io.ReadAll(q.Body)
		if err = errors.Join(err, q.Body.Close()); err != nil {
			return nil, err
		}
		q = q.Clone(q.Context()) // a RoundTripper must not change the request
		q.Body = io.NopCloser(bytes.NewReader(body))
		json.Unmarshal(body, &sent) // a JSON patch is a list, and has no name
	}
	event := info.Resource == "events"
	r.mutex.Lock()
	before := r.before
	r.mutex.Unlock()
	var response *http.Response
	var err error
	if before != nil && !event {
		err = before(describe(info, cmp.Or(info.Name, sent.Metadata.Name)), q)
	}
	if err == nil {
		response, err = r.send(q)
	} else {
		response, err = rejection(q, err)
	}
	if err != nil {
		got.Reason = err.Error()
	} else if err := got.readFrom(response); err != nil {
		return nil, err
	}
	ok := err == nil && response.StatusCode/100 == 2
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case !event:
		write := describe(info, cmp.Or(info.Name, sent.Metadata.Name, got.Metadata.Name))
		if !ok {
			write += ": " + cmp.Or(got.Reason, "failed")
		}
		r.writes = append(r.writes, write)
	case ok && slices.Contains(r.enabled, cmp.Or(got.ReportingController, got.ReportingComponent, got.Source.Component)):
		r.events = append(r.events, strings.Join([]string{got.Type, got.Reason, got.Message + got.Note}, " "))
	}
	return response, err
}

// ruleName returns the resource of a request as in rules, such as foos/status.
func ruleName(info *request.RequestInfo) string {
	if info.Subresource == "" {
		return info.Resource
	}
	return info.Resource + "/" + info.Subresource
}

// describe returns a description of a request, as in [Env.Writes].
func describe(info *request.RequestInfo, name string) string {
	object := name
	if info.Namespace != "" && info.Resource != "namespaces" {
		object = info.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s", info.Verb, schema.GroupResource{Group: info.APIGroup, Resource: ruleName(info)}, object)
}

// rejection returns the response of an API server that rejects a request with an error.
func rejection(q *http.Request, err error) (*http.Response, error) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return nil, err // like a network error
	}
	response, err := fakeapi.Answer(q, int(status.Status().Code), status.Status())
	if details := status.Status().Details; err == nil && details != nil && details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	return response, err
}

// allow sets the rules of a controller; nil allows everything.
func (r *recorder) allow(controller string, rules []rbacv1.PolicyRule) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.rules[controller] = rules
}

// check fails the test if no rule allows a request. Informers are shared, so their reads must
// be allowed for any controller.
func (r *recorder) check(client string, info *request.RequestInfo) {
	names := []string{client}
	if client == "informers" {
		names = r.enabled
	}
	r.mutex.Lock()
	rulesOf := maps.Clone(r.rules)
	r.mutex.Unlock()
	for _, name := range names {
		if rules := rulesOf[name]; rules == nil || slices.ContainsFunc(rules,
			func(rule rbacv1.PolicyRule) bool { return allows(rule, info) }) {
			return
		}
	}
	sent := describe(info, info.Name)
	r.fail("%s sends %q, which Descriptor.Rules do not allow: add {APIGroups: []string{%q}, Resources: []string{%q}, Verbs: []string{%q}}",
		client, sent, info.APIGroup, ruleName(info), info.Verb)
}

// allows reports whether a rule allows a request in RBAC.
func allows(rule rbacv1.PolicyRule, info *request.RequestInfo) bool {
	has := func(list []string, one, all string) bool {
		return slices.Contains(list, one) || slices.Contains(list, all)
	}
	all := "*"
	if info.Subresource != "" {
		all = "*/" + info.Subresource
	}
	return has(rule.Verbs, info.Verb, "*") && has(rule.APIGroups, info.APIGroup, "*") &&
		(has(rule.Resources, ruleName(info), all) || slices.Contains(rule.Resources, "*")) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, info.Name))
}

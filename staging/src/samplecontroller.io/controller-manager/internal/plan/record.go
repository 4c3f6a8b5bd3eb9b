// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"samplecontroller.io/controller-manager/internal/requests"
	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/internal/writes"
)

// Wrap returns a wrapper that records the writes of a controller in the sync of their context. Before each
// write it reads the object, because the caches do not keep all fields. The clients must send and accept JSON.
func (r *Recorder) Wrap(controller string) func(http.RoundTripper) http.RoundTripper {
	account := ""
	if r.Account != nil {
		account = r.Account(controller)
	}
	return func(next http.RoundTripper) http.RoundTripper { return &recording{next, account} }
}

type recording struct {
	next    http.RoundTripper
	account string // that writes; empty for that of the client
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (t *recording) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *recording) RoundTrip(request *http.Request) (*http.Response, error) {
	if !requests.IsWrite(request) {
		return t.next.RoundTrip(request)
	}
	if t.account != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Impersonate-User", t.account)
	}
	s, ok := request.Context().Value(callKey{}).(*call)
	target, isWrite := writes.TargetOf(request)
	if !ok || !isWrite || changesNothing(target) {
		return t.next.RoundTrip(request)
	}
	change := Change{Controller: s.controller, For: s.key, Verb: target.Verb, Resource: target.Resource,
		Namespace: target.Namespace, Name: target.Name}
	change.delay, _ = request.Context().Value(delayKey{}).(time.Duration)
	if change.Verb == "create" {
		change.Name = nameIn(request)
	}
	var before object
	if target.Name != "" && (target.Subresource() == "" || target.Subresource() == "status") {
		found, later, err := t.read(request, target)
		if (err != nil || later != nil) && request.Body != nil {
			request.Body.Close() // required of every RoundTripper
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %s before its dry run: %w", target.Resource, change.ObjectName(), err)
		}
		if later != nil {
			return later, nil
		}
		before = found
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := writes.Fetch(response)
	if err != nil {
		return nil, err
	}
	// If the object exists, its kind has no status subresource.
	isGone := response.StatusCode == http.StatusNotFound && target.Verb != "create" && (before == nil || !change.isStatus())
	switch code := response.StatusCode; {
	case code/100 == 2:
		s.record(change, before, body)
	case code == http.StatusConflict, isGone:
		// The cache is stale. The sync is called again.
	case isLater(response):
		// The client sends the request again. If it gives up, the sync fails.
	default:
		s.refuse(change, body, response.Status)
	}
	return response, nil
}

// nameIn returns the name in the body of a request, empty if it is not known.
func nameIn(request *http.Request) string {
	if request.GetBody == nil {
		return ""
	}
	body, err := request.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	var named metav1.PartialObjectMetadata
	if err := json.NewDecoder(body).Decode(&named); err != nil {
		return ""
	}
	return named.Name
}

// changesNothing reports whether a write only asks for something, or is an Event.
func changesNothing(t writes.Target) bool {
	switch _, group, _ := strings.Cut(t.Resource, "."); {
	case group == "authorization.k8s.io", group == "authentication.k8s.io", t.Resource == "serviceaccounts/token":
		return t.Verb == "create"
	default:
		return t.Resource == "events" || t.Resource == "events.events.k8s.io"
	}
}

// isLater reports whether the API server asks a client to send a request again, as client-go does.
func isLater(response *http.Response) bool {
	_, err := strconv.Atoi(response.Header.Get("Retry-After"))
	code := response.StatusCode
	return err == nil && (code == http.StatusTooManyRequests || code >= http.StatusInternalServerError)
}

// read returns the object of a request as stored, nil if there is none. It lists, because controllers may not get. If
// the client is to send the request later, it returns that response instead.
func (t *recording) read(request *http.Request, target writes.Target) (_ object, later *http.Response, _ error) {
	place := *request.URL
	suffix := "/" + target.Name
	if subresource := target.Subresource(); subresource != "" {
		suffix += "/" + subresource
	}
	place.Path, place.RawPath = strings.TrimSuffix(strings.TrimSuffix(place.Path, "/"), suffix), ""
	place.RawQuery = url.Values{
		"fieldSelector": {fields.OneTermEqualSelector(metav1.ObjectNameField, target.Name).String()},
	}.Encode()
	list, err := http.NewRequestWithContext(request.Context(), http.MethodGet, place.String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	list.Header = request.Header.Clone()
	list.Header.Del("Content-Type")
	list.Header.Del("Impersonate-User") // the program reads for its controllers
	list.Header.Set("Accept", runtime.ContentTypeJSON)
	response, err := t.next.RoundTrip(list)
	if err != nil {
		return nil, nil, err
	}
	body, err := writes.Fetch(response)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case isLater(response):
		return nil, response, nil
	case response.StatusCode != http.StatusOK:
		return nil, nil, errors.New(messageOf(body, response.Status))
	}
	var found struct {
		Kind, APIVersion string
		Items            []object
	}
	if err := decode(body, &found); err != nil || len(found.Items) == 0 {
		return nil, nil, err
	}
	o := found.Items[0]
	o["kind"], o["apiVersion"] = strings.TrimSuffix(found.Kind, "List"), found.APIVersion
	return o, nil, nil
}

// decode decodes JSON, with numbers as they are, because a float64 cannot hold every int64.
func decode(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// messageOf returns the message of a Status, or else the other text.
func messageOf(body []byte, otherwise string) string {
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || status.Message == "" {
		return otherwise
	}
	return status.Message
}

// noDryRun ends the message of the API server for a webhook whose side effects do not exclude dry runs.
const noDryRun = "does not support dry run"

// record records a dry run that succeeded, unless it would change nothing.
func (s *call) record(c Change, before object, answer []byte) {
	isStatus := c.isStatus()
	var after object
	if c.Verb != "delete" && c.Verb != "deletecollection" {
		if err := decode(answer, &after); err != nil {
			after = nil
		}
		if c.Name == "" {
			c.Name, _ = after.metadata()["name"].(string)
		}
	}
	before.clean(isStatus, false)
	after.clean(isStatus, before == nil)
	if c.Resource == "secrets" {
		mask(before, after)
	}
	c.Fields, c.Before, c.After = before.differences(after), before.yaml(), after.yaml()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes = slices.DeleteFunc(s.changes, c.replaces)
	if len(c.Fields) == 0 && before != nil && after != nil {
		return
	}
	s.changes = append(s.changes, c)
}

// replaces reports whether a write also has what an earlier one of the call would change. None of them is stored, so
// each status is complete, and so is each patch of the object that is reconciled.
func (c Change) replaces(earlier Change) bool {
	isOther := func(field string) bool { return !slices.Contains(c.Fields, field) }
	return c.id() == earlier.id() && (c.isStatus() || !slices.ContainsFunc(earlier.Fields, isOther))
}

// isMissingPermission reports whether the answer to a write says that the account may not make it.
func (c Change) isMissingPermission(answer []byte) bool {
	var status metav1.Status
	if err := json.Unmarshal(answer, &status); err != nil {
		return false
	}
	write := writes.Write{Verb: c.Verb, Resource: c.Resource}
	return writes.IsMissingPermission(&apierrors.StatusError{ErrStatus: status}, write, c.Name)
}

// refuse records a dry run that the API server refused.
func (s *call) refuse(c Change, answer []byte, status string) {
	message, _ := truncate.Object(messageOf(answer, status))
	problem := Problem{Controller: c.Controller, For: c.For, Write: c.String(), Message: message}
	c.isUnsupported, c.isForbidden = strings.Contains(message, noDryRun), c.isMissingPermission(answer)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.refused = append(s.refused, c)
	if c.isUnsupported {
		s.unknown = append(s.unknown, problem)
	} else {
		s.errors = append(s.errors, problem)
	}
}

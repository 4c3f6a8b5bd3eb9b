// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// conversation is a sequence of requests and answers. Values that differ between API servers have
// symbols, such as $rv1, the first resourceVersion that has been seen. Requests use them, too.
type conversation struct {
	t         *testing.T
	host      string
	transport http.RoundTripper
	symbols   map[string]string // values by symbol
	known     map[string]string // symbols by value
	counts    map[string]int    // of symbols, by prefix
	events    int               // after which a watch is ended, 0 for never
}

func newConversation(t *testing.T, host string, transport http.RoundTripper) *conversation {
	return &conversation{
		t: t, host: host, transport: transport,
		symbols: map[string]string{}, known: map[string]string{}, counts: map[string]int{},
	}
}

// mediaTypes are the words for content types after the path of a request.
var mediaTypes = map[string]string{
	"json-patch": "application/json-patch+json", "merge-patch": "application/merge-patch+json",
	"strategic-patch": "application/strategic-merge-patch+json",
}

// send sends a request in the form of the files, and returns the answer with symbols.
func (c *conversation) send(text string) string {
	c.t.Helper()
	line, body, _ := strings.Cut(text, "\n")
	words := strings.Fields(c.replace(line, c.symbols))
	var reader io.Reader
	if strings.TrimSpace(body) != "" {
		content, err := yaml.YAMLToJSON([]byte(body))
		if err != nil {
			c.t.Fatalf("%s: %v", line, err)
		}
		reader = strings.NewReader(c.replace(string(content), c.symbols))
	}
	r, err := http.NewRequestWithContext(c.t.Context(), words[0], c.host+words[1], reader)
	if err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	for _, word := range words[2:] {
		if mediaType, ok := mediaTypes[word]; ok {
			r.Header.Set("Content-Type", mediaType)
		} else {
			r.Header.Set("Accept", "application/json;g=meta.k8s.io;v=v1;as="+word)
		}
	}
	response, err := c.transport.RoundTrip(r)
	if err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	defer response.Body.Close()
	answer := c.read(response.Body)
	if response.StatusCode == http.StatusNotFound && !strings.Contains(answer, "  kind: ") {
		answer = "The path is not served." // in whatever words
	}
	return fmt.Sprintf("%d\n%s", response.StatusCode, answer)
}

// read returns the objects in the body of a response. That of a watch may have several.
func (c *conversation) read(body io.Reader) string {
	c.t.Helper()
	var texts []string
	for decoder := json.NewDecoder(body); ; {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // such as "404 page not found"
			return "not JSON"
		}
		event, ok := object["type"].(string)
		if ok && object["object"] != nil {
			object = object["object"].(map[string]any)
			event = "- " + event + "\n"
		} else {
			event = ""
		}
		if kind, _ := object["kind"].(string); event == "- BOOKMARK\n" || strings.HasSuffix(kind, "List") {
			object["metadata"].(map[string]any)["resourceVersion"] = "$now" // also changes with other objects
		}
		encoded, err := yaml.Marshal(c.symbolic("", object))
		if err != nil {
			c.t.Fatal(err)
		}
		if event == "- BOOKMARK\n" && !strings.Contains(string(encoded), metav1.InitialEventsAnnotationKey) {
			continue // how many there are depends on the time
		}
		texts = append(texts, event+string(encoded))
		if c.events > 0 && len(texts) == c.events {
			break
		}
	}
	return strings.TrimSuffix(strings.Join(texts, ""), "\n")
}

// eventLine is the first line of a watch event.
var eventLine = regexp.MustCompile(`(?m)^- [A-Z]+$`)

var (
	number = regexp.MustCompile(`(version: |\()\d+`) // in messages about resourceVersions
	// in messages about patches, with its managed fields
	quotedObject = regexp.MustCompile(`"\{(\\.|[^"\\])*\}"`)
	prefixes     = map[string]string{
		"resourceVersion": "$rv", "uid": "$uid", "continue": "$continue", "clusterIP": "$ip",
		"controller-uid": "$uid", "batch.kubernetes.io/controller-uid": "$uid",
	}
	timeField = map[string]bool{"creationTimestamp": true, "deletionTimestamp": true}
)

// symbolic returns a value with symbols, and without what no test compares.
func (c *conversation) symbolic(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		if v["continue"] == "" {
			delete(v, "continue")
		}
		if prefix, ok := v["generateName"].(string); ok {
			if name, _ := v["name"].(string); strings.HasPrefix(name, prefix) {
				c.symbol("$name", name)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = c.symbolic(key, v[key])
		}
		return v
	case []any:
		for i := range v {
			v[i] = c.symbolic(strings.TrimSuffix(field, "s"), v[i])
		}
		return v
	case string:
		if timeField[field] {
			return "$time"
		}
		if prefix := prefixes[field]; prefix != "" && v != "" && v != "None" && !strings.HasPrefix(v, "$") {
			return c.symbol(prefix, v)
		}
		v = quotedObject.ReplaceAllString(v, `"{$$object}"`)
		return number.ReplaceAllString(c.replace(v, c.known), "$1$$rv")
	}
	return value
}

// symbol returns the symbol of a value, which may be new.
func (c *conversation) symbol(prefix, value string) string {
	key := prefix + value
	if symbol, ok := c.known[key]; ok {
		return symbol
	}
	c.counts[prefix]++
	symbol := fmt.Sprintf("%s%d", prefix, c.counts[prefix])
	c.symbols[symbol], c.known[key] = value, symbol
	if prefix == "$uid" || prefix == "$name" { // which texts contain
		c.known[value] = symbol
	}
	return symbol
}

// replace replaces whole words.
func (c *conversation) replace(text string, by map[string]string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if replacement := by[word]; replacement != "" {
			return replacement
		}
		return word
	})
}

var words = regexp.MustCompile(`\$?[-a-zA-Z0-9]+`)

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// htmlReader gets a page again whenever it is looked at, as a browser without JavaScript on a person's demand.
type htmlReader struct {
	t   *testing.T
	url string
}

func (r *htmlReader) open(url string) error {
	r.url = url
	_, err := r.parse()
	return err
}

func (r *htmlReader) parse() (*html.Node, error) {
	response, err := http.Get(r.url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", r.url, response.Status)
	}
	return html.ParseWithOptions(response.Body, html.ParseOptionEnableScripting(false))
}

func (r *htmlReader) text() (string, error) {
	root, err := r.parse()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	addText(&text, root)
	return text.String(), nil
}

// addText adds the visible text below a node, with a tab after each cell.
func addText(text *strings.Builder, node *html.Node) {
	for child := range node.ChildNodes() {
		if child.Type == html.TextNode {
			text.WriteString(child.Data)
		}
		if !slices.ContainsFunc(child.Attr, func(a html.Attribute) bool { return a.Key == "hidden" }) {
			addText(text, child)
		}
		if child.Data == "th" || child.Data == "td" {
			text.WriteByte('\t')
		}
	}
}

func (r *htmlReader) follow(id string) error {
	root, err := r.parse()
	if err != nil {
		return err
	}
	for node := range root.Descendants() {
		if node.Data != "a" || attribute(node, "id") != id {
			continue
		}
		request, err := http.NewRequest(http.MethodGet, r.url, nil)
		if err != nil {
			return err
		}
		to, err := request.URL.Parse(attribute(node, "href"))
		if err != nil {
			return err
		}
		return r.open(to.String())
	}
	return fmt.Errorf("no link %s", id)
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

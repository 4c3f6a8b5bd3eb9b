// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// functions are what the templates call.
var functions = template.FuncMap{
	"ago": func(t time.Time) template.HTML { return timeElement(t, 0) },
	"fresh": func(f freshness) template.HTML {
		return timeElement(f.Read, f.Limit)
	},
	"short":      func(text string) string { return truncated(text, 80) },
	"round":      func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() },
	"controller": controllerPath,
	"object":     objectPath,
	"key":        keyPath,
	"clock":      func(t time.Time) string { return t.UTC().Format("15:04:05") },
}

// timeElement returns an element for the age of a time, which [withAges] fills.
func timeElement(t time.Time, limit time.Duration) template.HTML {
	if t.IsZero() {
		return "-"
	}
	attribute := ""
	if limit > 0 {
		attribute = fmt.Sprintf(` data-old="%d"`, int(limit.Seconds()))
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s"%s></time>`, t.UTC().Format(time.RFC3339), attribute))
}

var timeElements = regexp.MustCompile(`<time datetime="([^"]+)"(?: data-old="(\d+)")?></time>`)

// withAges fills in the ages of a fragment just before it is sent. Without them, a fragment does not change as time
// passes; in the browser, assets/dashboard.js keeps the ages up to date.
func withAges(fragment []byte, now time.Time) []byte {
	return timeElements.ReplaceAllFunc(fragment, func(element []byte) []byte {
		match := timeElements.FindSubmatch(element)
		t, err := time.Parse(time.RFC3339, string(match[1]))
		if err != nil {
			return element
		}
		text := ageText(now.Sub(t))
		if limit, err := strconv.Atoi(string(match[2])); err == nil && now.Sub(t) > time.Duration(limit)*time.Second {
			text += ", old"
		}
		return []byte(strings.TrimSuffix(string(element), "</time>") + text + "</time>")
	})
}

// ageText says how long ago or ahead something is, as assets/dashboard.js does.
func ageText(d time.Duration) string {
	if d < 0 {
		return "in " + words(-d)
	}
	return words(d) + " ago"
}

// words rounds a duration down to its largest unit.
func words(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}

// truncated returns at most the first bytes of a text.
func truncated(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// controllerPath returns the path of the page of a controller.
func controllerPath(name string) string { return "controller/" + url.PathEscape(name) }

// objectPath returns the path of the page of an object.
func objectPath(o cluster.Object) string {
	return "object/" + strings.ToLower(o.Kind) + "/" + url.PathEscape(o.Namespace) + "/" + url.PathEscape(o.Name)
}

// keyPath returns the path of the page of the object with a key in the queue of a controller, empty if the controller
// is not for one kind.
func keyPath(controller, key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	for _, kind := range cluster.Kinds {
		if kind.Controller+"-controller" == controller {
			return objectPath(cluster.Object{Kind: kind.Name, Namespace: namespace, Name: name})
		}
	}
	return ""
}

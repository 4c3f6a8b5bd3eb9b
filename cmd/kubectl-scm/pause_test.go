// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestInvalidArgumentsOfPause(t *testing.T) {
	for args, want := range map[string]string{
		"pause":                          "usage: pause kind [namespace/]name, for example: kubectl scm pause foo default/example-foo",
		"resume":                         "usage: resume kind [namespace/]name",
		"pause pod a":                    `"pod" is not a kind that the daemon keeps: use foo or icecream, or namespace`,
		"pause foo-controller":           "a whole controller is paused by the flag --paused-controllers=foo-controller of all replicas",
		"pause status-aggregator":        "by the flag --paused-controllers=status-aggregator-controller",
		"pause namespace a/b":            `"a/b" is not the name of a namespace`,
		"pause namespace a -n b":         "--namespace is the namespace of objects, and this names none",
		"pause foo a --for=-1h":          "invalid --for -1h0m0s: must be positive",
		"pause foo a --for=0":            `invalid --for "0s": must say when the pause ends; for a pause without end, leave --for out`,
		"pause foo a --until=":           `invalid --until "": must say when the pause ends; for a pause without end, leave --until out`,
		"pause foo a --until= --for=1h":  `invalid --until "": must say when the pause ends`,
		"pause foo a --until=tomorrow":   `invalid --until "tomorrow": must be a time such as 2026-01-02T15:04:05Z`,
		"pause foo a --for=1h --until=x": "--for and --until are mutually exclusive",
		"pause foo a --until=" + longAgo: "invalid --until " + longAgo + ": must not be over",
		"resume foo a --for=1h":          "unknown flag: --for",
		"pause foo a/b -n c":             `"a/b" is not in the namespace "c" that --namespace names`,
		"pause foo default/a extra":      "usage: pause kind [namespace/]name",
	} {
		_, err := execute(t, append(strings.Fields(args), kubeconfigOf(t, "http://127.0.0.1:1"))...)
		check(t, err, want)
	}
}

// kubeconfigOf returns the flag for a kubeconfig with this address of the API server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return "--kubeconfig=" + file
}

const longAgo = "2000-01-01T00:00:00Z"

func TestPauseValue(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, test := range []struct {
		length    time.Duration
		end, want string
	}{
		{0, "", "true"}, {time.Hour, "", "2026-01-02T04:04:06Z"}, {0, "2026-01-02T15:04:05+02:00", "2026-01-02T15:04:05+02:00"},
	} {
		if got, err := pauseValue(now, test.length, test.end); err != nil || got != test.want {
			t.Errorf("%v, %q: %q, %v, want %q", test.length, test.end, got, err, test.want)
		}
	}
}

// TestPauseVerbs compares the requests and the pages.
func TestPauseVerbs(t *testing.T) {
	const key = "sample-controller-manager.samplecontroller.io/paused"
	const byNamespace = "Paused by the annotation " + key + " of namespace shop until it is removed"
	for args, test := range map[string]struct {
		stored    string // metadata.annotations and status
		path, set string
		page      string
	}{
		"pause foo/a -n shop": {
			`"metadata":{"name":"a"}`, "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/shop/foos/a", `"true"`,
			"Paused Foo shop/a until it is resumed. The daemon writes nothing for it but the condition Paused, unless it is being deleted. To resume: kubectl scm resume foo shop/a",
		},
		"pause ns shop --for=1h": {
			`"metadata":{"name":"shop"}`, "/api/v1/namespaces/shop", `"TIME"`,
			"Paused namespace shop until TIME. The daemon writes nothing for its objects but the condition Paused, unless they are being deleted. A daemon with --namespace, or without the right to read namespaces, ignores this. To resume: kubectl scm resume namespace shop",
		},
		"resume icecream shop/a": {
			`"metadata":{"name":"a","annotations":{"` + key + `":"true"}}`, "/apis/controller.nicoleh.io/v1alpha1/namespaces/shop/icecreams/a", "null",
			"Resumed Icecream shop/a. The daemon corrects what was changed in the meantime, within a second.",
		},
		"resume foo shop/a": {
			`"metadata":{"name":"a"},"status":{"conditions":[{"type":"Paused","status":"True","message":"` + byNamespace + `"}]}`,
			"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/shop/foos/a", "null",
			"Foo shop/a has no annotation " + key + ": there is nothing to remove. It is still paused: " + byNamespace,
		},
	} {
		var patched string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				body, _ := io.ReadAll(r.Body)
				patched = r.URL.String() + " " + string(body)
			}
			w.Header().Set("Content-Type", "application/json")
			stored := test.stored
			if r.URL.Path != test.path {
				stored = `"metadata":{"name":"shop"}` // the namespace of an object
			}
			fmt.Fprintf(w, `{"apiVersion":"x/v1","kind":"X",%s}`, stored)
		}))
		page, err := execute(t, append(strings.Fields(args), kubeconfigOf(t, server.URL))...)
		server.Close()
		check(t, err, "")
		timeless := func(text string) string {
			return regexp.MustCompile(`20\d\d-[-0-9T:]*Z`).ReplaceAllString(strings.Join(strings.Fields(text), " "), "TIME")
		}
		if got := timeless(page); got != test.page {
			t.Errorf("%s prints\n%s\nwant\n%s", args, got, test.page)
		}
		want := test.path + `?fieldManager=kubectl-scm {"metadata":{"annotations":{"` + key + `":` + test.set + `}}}`
		if got := timeless(patched); got != want {
			t.Errorf("%s sends\n%s\nwant\n%s", args, got, want)
		}
	}
}

// TestResumeInPausedNamespace removes the annotation of a Foo, whose status does not name its namespace.
func TestResumeInPausedNamespace(t *testing.T) {
	const resumed = "Resumed Foo shop/a. The daemon corrects what was changed in the meantime, within a second."
	const still = "Removed the annotation of Foo shop/a. It is still paused: namespace shop has the annotation, too; to resume: " +
		"kubectl scm resume namespace shop. A daemon with --namespace, or without the right to read namespaces, ignores that."
	for namespace, want := range map[string]string{
		"true": still, "": still, "tomorrow": still, "2999-01-01T00:00:00Z": still, "false": resumed, longAgo: resumed,
		"forbidden": resumed + " It is not known whether its namespace is paused, too: reading namespace shop: ",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			value, status := namespace, ""
			if strings.HasSuffix(r.URL.Path, "/foos/a") {
				value, status = "true", `,"status":{"conditions":[{"type":"Paused","status":"True","message":"Paused by the annotation of this Foo until"}]}`
			} else if namespace == "forbidden" {
				w.WriteHeader(http.StatusForbidden)
			}
			const object = `{"apiVersion":"x/v1","kind":"X","metadata":{"name":"x","annotations":{"sample-controller-manager.samplecontroller.io/paused":%q}}%s}`
			fmt.Fprintf(w, object, value, status)
		}))
		page, err := execute(t, "resume", "foo", "shop/a", kubeconfigOf(t, server.URL))
		server.Close()
		check(t, err, "")
		if got := strings.Join(strings.Fields(page), " "); got != want && (namespace != "forbidden" || !strings.HasPrefix(got, want)) {
			t.Errorf("in a namespace with the value %q, resume prints\n%s\nwant\n%s", namespace, got, want)
		}
	}
}

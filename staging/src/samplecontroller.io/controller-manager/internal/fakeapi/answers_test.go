// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var update = flag.Bool("update", false, "write the answers of the API server of TEST_KUBECONFIG to testdata")

// TestAnswers sends the requests in testdata, and expects the answers in testdata. They are those of a
// real API server, to which TEST_KUBECONFIG sends the requests, too.
func TestAnswers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	kubeconfig := os.Getenv("TEST_KUBECONFIG")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			if kubeconfig != "" {
				config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
				if err != nil {
					t.Fatal(err)
				}
				transport, err := rest.TransportFor(config)
				if err != nil {
					t.Fatal(err)
				}
				installCRDs(t, config.Host, transport)
				expectAnswers(newConversation(t, config.Host, transport), file, !*update)
				return
			}
			if *update {
				t.Fatal("-update needs TEST_KUBECONFIG: the answers are those of a real API server")
			}
			// Time stands still in the bubble, so that watches end at once.
			synctest.Test(t, func(t *testing.T) {
				api := New(kubescheme.Scheme)
				installCRDs(t, "http://api.test", api)
				api.Compact()
				expectAnswers(newConversation(t, "http://api.test", api), file, false)
			})
		})
	}
}

// installCRDs creates the CRDs in testdata, and waits until their kinds are served.
func installCRDs(t *testing.T, host string, transport http.RoundTripper) {
	t.Helper()
	content, err := os.ReadFile("testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := newConversation(t, host, transport)
	for crd := range strings.SplitSeq(string(content), "\n---\n") {
		answer := c.send("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions\n" + crd)
		if strings.HasPrefix(answer, "409") {
			continue
		}
		if !strings.HasPrefix(answer, "201") {
			t.Fatal(answer)
		}
		name, _, _ := strings.Cut(strings.SplitAfter(crd, "name: ")[1], ".")
		for !strings.HasPrefix(c.send("GET /apis/fakeapi.example.com/v1/"+name), "200") {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// expectAnswers sends the requests of a file in a namespace of their own. If it is impatient, it ends
// watches after the recorded events, so that their timeouts need not be short.
func expectAnswers(c *conversation, file string, impatient bool) {
	t := c.t
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(file), ".txt")
	ns := "fakeapi-" + name + "-" + utilrand.String(5)
	c.symbols["$ns"], c.known[ns] = ns, "$ns"
	var got strings.Builder
	comment, exchanges, _ := strings.Cut(string(content), "\n>>> ")
	got.WriteString(comment)
	for exchange := range strings.SplitSeq(strings.TrimSuffix(exchanges, "\n"), "\n>>> ") {
		request, answer, _ := strings.Cut(exchange, "\n<<< ")
		if c.events = 0; impatient {
			c.events = len(eventLine.FindAllString(answer, -1))
		}
		got.WriteString("\n>>> " + request + "\n<<< " + c.send(request))
	}
	got.WriteString("\n")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(strings.Split(string(content), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hammers is how many clients ask for a page again as soon as they are answered, each on
// a connection that it keeps.
const hammers = 200

// memoryBudget is how much more memory of its own the daemon may have for that.
const memoryBudget = 100 << 20

// BenchmarkHammer measures how fast Foos are served while the daemon's pages are asked
// for without end, beside how fast they are when nobody asks. See the comment of the
// package.
func BenchmarkHammer(b *testing.B) {
	var token string
	l := newLab(b, func(l *lab, ctx context.Context) (err error) {
		if err = l.allowFaulty(ctx); err == nil {
			token, err = l.scraper(ctx)
		}
		return err
	})
	if _, err := l.measureWith(b.Context(), troubles[0], false); err != nil { // the first is slower
		b.Fatal(err)
	}
	var t isolationTable
	for _, target := range []struct{ name, path, token string }{
		{"/metrics, authorised", "/metrics", token},
		{"/metrics, with bad tokens", "/metrics", "bad"},
		{"/healthz, which has no limit", "/healthz", ""},
	} {
		b.Run(strings.ReplaceAll(strings.Trim(target.name, "/"), " ", "-"), func(b *testing.B) {
			h := &hammer{path: target.path, token: target.token, admin: token}
			without, with := l.compare(b, trouble{target.name, h.swing})
			t.add(b, target.name, without, with)
			b.Logf("%s\n%s", &t, h)
			if more := h.memory[true] - h.memory[false]; more > memoryBudget {
				b.Errorf("it takes %d MiB more memory, want at most %d", more>>20, memoryBudget>>20)
			}
		})
	}
}

// scraper makes somebody who may see the metrics, and returns their token.
func (l *lab) scraper(ctx context.Context) (string, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "scraper"}
	if _, err := l.kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	_, err := l.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: daemonName + "-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: meta.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	request, err := l.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// hammer is clients that ask for one page, and what they were answered.
type hammer struct {
	path, token string
	admin       string // a token of somebody who may see the metrics

	mutex   sync.Mutex
	answers map[int]int // by status
	lasted  time.Duration
	memory  map[bool]int // the most that the daemon had, with and without them
}

// swing has the clients ask until undo is called; or, without the fault, nobody.
func (h *hammer) swing(l *lab, ctx context.Context, fault bool) (undo func() error, err error) {
	url, err := l.servedAt()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	var asking, connected sync.WaitGroup
	if fault {
		connected.Add(hammers)
		for i := range hammers {
			asking.Go(func() {
				client := newScraper()
				defer client.CloseIdleConnections()
				token := h.token
				for n := 0; ctx.Err() == nil; n++ {
					if token == "bad" { // another each time: nobody remembers it
						token = fmt.Sprintf("bad-%d-%d", i, n)
					}
					code, _ := scrape(ctx, client, url+h.path, token)
					h.note(code)
					token = h.token
					if n == 0 {
						connected.Done()
					}
				}
			})
		}
	}
	connected.Wait() // what that takes is no matter of how often they ask then
	return func() error {
		cancel()
		asking.Wait()
		if fault {
			h.lasted += time.Since(began)
		}
		return h.noteMemory(url, fault)
	}, nil
}

func (h *hammer) note(code int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.answers == nil {
		h.answers = map[int]int{}
	}
	h.answers[code]++
}

// residentMemory is the line of the metrics that tells how much memory the daemon has.
var residentMemory = regexp.MustCompile(`\nprocess_resident_memory_bytes (\S+)\n`)

// noteMemory notes how much memory the daemon has, which it does not give back at once.
func (h *hammer) noteMemory(url string, fault bool) error {
	client := newScraper()
	defer client.CloseIdleConnections()
	return await(context.Background(), "the metrics tell of the memory", pollInterval, func() error {
		code, body := scrape(context.Background(), client, url+"/metrics", h.admin)
		match := residentMemory.FindStringSubmatch(body)
		if match == nil {
			return fmt.Errorf("%d %.200s", code, body)
		}
		bytes, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return err
		}
		if h.memory == nil {
			h.memory = map[bool]int{}
		}
		h.memory[fault] = max(h.memory[fault], int(bytes))
		return nil
	})
}

func (h *hammer) String() string {
	var codes []int
	for code := range h.answers {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	var s strings.Builder
	fmt.Fprintf(&s, "%d clients at %s were answered, each second:", hammers, h.path)
	for _, code := range codes {
		fmt.Fprintf(&s, " %.0f times %d;", float64(h.answers[code])/h.lasted.Seconds(), code)
	}
	fmt.Fprintf(&s, " memory without them %d MiB, with them %d MiB", h.memory[false]>>20, h.memory[true]>>20)
	return s.String()
}

func newScraper() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // self-signed
}

// scrape returns the status of the answer, 0 if there was none, and the page.
func scrape(ctx context.Context, client *http.Client, url, token string) (code int, page string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// servingAddress is where the log says that the daemon serves.
var servingAddress = regexp.MustCompile(`Serving securely on ([0-9.:]+)`)

// servedAt returns the URL of the daemon that was started last, as it says in its log.
func (l *lab) servedAt() (string, error) {
	log, err := os.ReadFile(l.group.LogPath(fmt.Sprintf("faulty-%d", l.started.Load())))
	if err != nil {
		return "", err
	}
	match := servingAddress.FindSubmatch(log)
	if match == nil {
		return "", errors.New("the daemon does not say where it serves")
	}
	return "https://" + string(match[1]), nil
}

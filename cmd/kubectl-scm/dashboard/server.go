// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"html/template"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed assets/*.js assets/*.css assets/LICENSE.*
var assets embed.FS

//go:embed templates/*.html
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))

// policy allows what the files in folder assets need, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Server serves the pages of a dashboard on this machine.
type Server struct {
	d        *Dashboard
	listener net.Listener
	token    string
}

// Listen listens on a port of this machine, on any free one if it is 0.
func Listen(d *Dashboard, port int) (*Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening on --port: %w", err)
	}
	return &Server{d, listener, rand.Text()}, nil
}

// URL returns the address of the first page. It has the token that all pages need.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" + s.token + "/" }

// Serve serves until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		WriteTimeout: slow,
		BaseContext:  func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // streams do not end by themselves
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, resolve := range map[string]func(*http.Request) (*page, error){
		"{$}":                              s.d.overview,
		"controller/{name}":                s.d.controller,
		"objects":                          s.d.list,
		"object/{kind}/{namespace}/{name}": s.d.object,
	} {
		mux.HandleFunc("GET /{token}/"+pattern, s.servePage(resolve))
		mux.HandleFunc("GET /{token}/live/"+pattern, s.serveStream(resolve))
	}
	mux.HandleFunc("GET /{token}/assets/{hash}/{name}", serveAsset)
	return s.guarded(mux)
}

// guarded refuses requests by other names than those of this machine, which a page elsewhere could resolve to it, and
// those without the token.
func (s *Server) guarded(next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		if !slices.Contains(hosts, r.Host) {
			http.Error(w, "The dashboard answers only to "+hosts[0], http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet { // a stream for a HEAD would not end
			header.Set("Allow", http.MethodGet)
			http.Error(w, "Only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
			http.Error(w, "Not found: use the address that kubectl scm dashboard printed", http.StatusNotFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveAsset serves a file of folder assets. Its path has its hash.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	content, err := assets.ReadFile("assets/" + name)
	if err != nil || r.PathValue("hash") != hash(content) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(mime.TypeByExtension(path.Ext(name)), "text/plain; charset=utf-8"))
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(content) // the browser has gone
}

// hash returns a short hash of a fragment or a file.
func hash(content []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(content) // it cannot fail
	return hex.EncodeToString(h.Sum(nil))
}

// document is what the template of a whole page shows.
type document struct {
	*page
	Base, Stream string
	Rendered     map[string]template.HTML
}

// Asset returns the path of a file of folder assets.
func (d document) Asset(name string) (string, error) {
	content, err := assets.ReadFile("assets/" + name)
	return d.Base + "assets/" + hash(content) + "/" + name, err
}

// servePage serves a whole page.
func (s *Server) servePage(resolve func(*http.Request) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := resolve(r)
		if err != nil {
			http.Error(w, "Not found: "+err.Error(), http.StatusNotFound)
			return
		}
		now := time.Now()
		rendered, err := s.render(r.Context(), p, now)
		base := "/" + s.token + "/"
		d := document{page: p, Base: base, Rendered: map[string]template.HTML{}}
		var seen []string
		for _, f := range rendered {
			d.Rendered[f.name] = template.HTML(withAges(f.content, now))
			seen = append(seen, hash(f.content))
		}
		query := r.URL.Query()
		query.Set("seen", strings.Join(seen, "."))
		d.Stream = base + "live/" + strings.TrimPrefix(r.URL.EscapedPath(), base) + "?" + query.Encode()
		var out bytes.Buffer
		if err == nil {
			err = templates.ExecuteTemplate(&out, "page", d)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(out.Bytes()) // the browser has gone
	}
}

// fragment is a rendered part of a page, without ages.
type fragment struct {
	name    string
	content []byte
}

// render renders the fragments of a page.
func (s *Server) render(ctx context.Context, p *page, now time.Time) ([]fragment, error) {
	if p.refresh != nil {
		p.refresh(ctx, now)
	}
	v := newView(s.d.snapshot(), "/"+s.token+"/")
	p.fill(v)
	var rendered []fragment
	for _, name := range append([]string{"verdict"}, p.Parts...) {
		if name == "plots" || name == "form" {
			continue
		}
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, name, v); err != nil {
			return nil, err
		}
		rendered = append(rendered, fragment{name, out.Bytes()})
	}
	return rendered, nil
}

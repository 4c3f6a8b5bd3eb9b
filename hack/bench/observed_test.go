// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/bench/page"
	"samplecontroller.io/sample-controller-manager/hack/bench/usage"
)

// ask returns a page of the daemon.
func (o *observed) ask(ctx context.Context, path string) (string, error) {
	content, err := page.Get(ctx, o.lab.cluster.Config(), o.url+path)
	if err != nil {
		return "", errors.Join(err, o.Err())
	}
	return string(content), nil
}

// heapAlloc is the line of a heap profile that tells how much of the heap is in use.
var heapAlloc = regexp.MustCompile(`\n# HeapAlloc = ([0-9]+)\n`)

// liveHeap returns how many bytes of the heap are reachable.
func (o *observed) liveHeap(ctx context.Context) (int64, error) {
	var page string
	for range 2 { // what a pool keeps is let go by the second collection
		var err error
		if page, err = o.ask(ctx, "/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	match := heapAlloc.FindStringSubmatch(page)
	if match == nil {
		return 0, errors.New("the profile does not tell of the heap")
	}
	return strconv.ParseInt(match[1], 10, 64)
}

// profile writes what the live heap consists of to a directory; none if that is empty.
func (o *observed) profile(ctx context.Context, dir, name string) error {
	if dir == "" {
		return nil
	}
	page, err := o.ask(ctx, "/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".pprof"), []byte(page), 0o644)
}

// waitCached waits until the daemon has so many objects of a resource in its cache.
func (o *observed) waitCached(ctx context.Context, resource string, count int) error {
	line := fmt.Sprintf("sample_controller_manager_informer_objects{resource=%q} %d\n", resource, count)
	return await(ctx, fmt.Sprintf("%d %s are cached", count, resource), time.Second, func() error {
		page, err := o.ask(ctx, "/metrics")
		if err == nil && !strings.Contains(page, line) {
			err = errors.New("not yet")
		}
		return err
	})
}

// waitIdle waits until the daemon has done next to nothing for a while.
func (o *observed) waitIdle(ctx context.Context) error {
	const while, little = 5 * time.Second, 100 * time.Millisecond
	before, err := usage.Of(o.lab.dir, o.Name())
	if err != nil {
		return err
	}
	return await(ctx, "the daemon is at rest", time.Millisecond, func() error {
		time.Sleep(while)
		after, err := usage.Of(o.lab.dir, o.Name())
		if err != nil {
			return err
		}
		took := after.CPU - before.CPU
		before = after
		if took > little {
			return fmt.Errorf("it took %v of CPU in %v", took, while)
		}
		return o.Err()
	})
}

// atRest returns what the daemon takes when it has nothing more to do.
func (o *observed) atRest(ctx context.Context) (i inside, err error) {
	if err := o.waitIdle(ctx); err != nil {
		return i, err
	}
	if i.usage, err = usage.Of(o.lab.dir, o.Name()); err == nil {
		i.live, err = o.liveHeap(ctx)
	}
	return i, err
}

// watchEvent returns how large the watch events of a resource are in the mean that the API
// server has sent to anybody.
func (l *lab) watchEvent(ctx context.Context, resource string) (float64, error) {
	content, err := l.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	var figures [2]float64
	for i, name := range []string{"sum", "count"} {
		pattern := regexp.MustCompile(`\napiserver_watch_events_sizes_` + name + `\{[^}]*resource="` + resource + `"[^}]*\} (\S+)\n`)
		match := pattern.FindSubmatch(content)
		if match == nil {
			return 0, nil // nobody was told of any
		}
		if figures[i], err = strconv.ParseFloat(string(match[1]), 64); err != nil {
			return 0, err
		}
	}
	return figures[0] / figures[1], nil
}

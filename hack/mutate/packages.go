// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pkg is a package that has tests.
type pkg struct {
	Dir, Name                          string
	GoFiles, TestGoFiles, XTestGoFiles []string
	shown                              string // from the working directory
}

// list returns the packages with tests. Other than with go test, DIRECTORY/... also names
// those in modules below the directory.
func list(ctx context.Context, args []string) ([]*pkg, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var all []*pkg
	for _, arg := range args {
		dir, below := strings.CutSuffix(arg, "/...")
		dirs, pattern := []string{dir}, "."
		if below {
			pattern = "./..."
			err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Name() == "go.mod" && filepath.Dir(path) != filepath.Clean(dir) {
					dirs = append(dirs, filepath.Dir(path))
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		for _, dir := range dirs {
			command := exec.CommandContext(ctx, "go", "list", "-e", "-json=Dir,Name,GoFiles,TestGoFiles,XTestGoFiles", pattern)
			command.Dir, command.Stderr = dir, os.Stderr
			output, err := command.Output()
			if err != nil {
				return nil, fmt.Errorf("listing the packages of %s: %w", dir, err)
			}
			for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
				p := &pkg{}
				if err := decoder.Decode(p); err != nil {
					return nil, err
				}
				if p.shown, err = filepath.Rel(here, p.Dir); err != nil {
					return nil, err
				}
				if len(p.GoFiles) > 0 && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
					all = append(all, p)
				}
			}
		}
	}
	return all, nil
}

// run runs the mutants of the package, or a sample, and returns them all.
func (p *pkg) run(ctx context.Context, o options, progress io.Writer) ([]mutant, error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(progress, "%s: compiling\n", p.shown)
	binary, mutants, err := p.build(ctx, dir)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if output, err := p.test(ctx, binary, 0, 10*time.Minute); err != nil {
		return nil, fmt.Errorf("tests fail without a mutant: %w\n%s", err, output)
	}
	timeout := 20*time.Second + 5*time.Since(begin)
	chosen, err := choose(mutants, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%s: %d mutants, %d to run, timeout %v\n", p.shown, len(mutants), len(chosen), timeout.Round(time.Second))
	done, alive, told := 0, 0, time.Now()
	var mutex sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, o.parallel)
	begin = time.Now()
	for _, m := range chosen {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-turns }()
			_, err := p.test(ctx, binary, m.id, timeout)
			if ctx.Err() != nil {
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			done++
			if m.result = resultOf(err); m.result == survived {
				alive++
			}
			if time.Since(told) > 10*time.Second {
				told = time.Now()
				left := time.Since(begin) * time.Duration(len(chosen)-done) / time.Duration(done)
				fmt.Fprintf(progress, "%s: %d of %d run, %d survived, about %v left\n", p.shown, done, len(chosen), alive, left.Round(time.Second))
			}
		})
	}
	wg.Wait()
	return mutants, ctx.Err()
}

// choose returns the mutants that are to run, in the order of the source.
func choose(mutants []mutant, o options) ([]*mutant, error) {
	only, err := regexp.Compile(o.run)
	if err != nil {
		return nil, err
	}
	var chosen []*mutant
	for i := range mutants {
		m := &mutants[i]
		if m.result == "" && only.MatchString(fmt.Sprintf("%s:%d %s %s", m.file, m.line, m.function, m.change)) {
			chosen = append(chosen, m)
		}
	}
	if o.sample > 0 && o.sample < len(chosen) {
		random := rand.New(rand.NewPCG(o.seed, 0))
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:o.sample]
		slices.SortFunc(chosen, func(a, b *mutant) int { return a.id - b.id })
	}
	return chosen, nil
}

// exitInvalid is how a test process ends whose mutant would not compile.
const exitInvalid = 77

func resultOf(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived
	case errors.As(err, &exit) && exit.ExitCode() == exitInvalid:
		return invalid
	default:
		return killed
	}
}

func (p *pkg) test(ctx context.Context, binary string, id int, timeout time.Duration) (string, error) {
	command := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout="+timeout.String())
	command.Dir, command.Env = p.Dir, append(os.Environ(), "MUTANT="+strconv.Itoa(id))
	output, err := command.CombinedOutput()
	return string(output), err
}

// build compiles the tests with all mutants in the package, without those that do not compile.
func (p *pkg) build(ctx context.Context, dir string) (string, []mutant, error) {
	binary := filepath.Join(dir, "tests")
	skip := map[string]map[int]bool{}
	for {
		overlay, mutants, err := p.instrument(dir, skip)
		if err != nil {
			return "", nil, err
		}
		command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", binary, ".")
		command.Dir = p.Dir
		output, err := command.CombinedOutput()
		if err == nil {
			return binary, mutants, nil
		}
		failed := false
		for _, m := range regexp.MustCompile(`(?m)^(?:.*/)?([^/\s]+\.go):(\d+):`).FindAllStringSubmatch(string(output), -1) {
			line, _ := strconv.Atoi(m[2])
			if skip[m[1]] == nil {
				skip[m[1]] = map[int]bool{}
			}
			failed = failed || !skip[m[1]][line]
			skip[m[1]][line] = true
		}
		if !failed || ctx.Err() != nil {
			return "", nil, fmt.Errorf("compiling: %w\n%s", err, output)
		}
	}
}

// instrument writes the instrumented files to dir and returns what go calls an overlay.
func (p *pkg) instrument(dir string, skip map[string]map[int]bool) (string, []mutant, error) {
	replace := map[string]string{}
	write := func(name, source string) error {
		replace[filepath.Join(p.Dir, name)] = filepath.Join(dir, name)
		return os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600)
	}
	var all []mutant
	for _, name := range p.GoFiles {
		source, mutants, err := instrument(filepath.Join(p.Dir, name), filepath.Join(p.shown, name), len(all)+1, skip[name])
		if err != nil {
			return "", nil, err
		}
		all = append(all, mutants...)
		if err := write(name, source); err != nil {
			return "", nil, err
		}
	}
	if err := write("zz_mutants.go", fmt.Sprintf(switches, p.Name, exitInvalid)); err != nil {
		return "", nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, all, os.WriteFile(path, overlay, 0o600)
}

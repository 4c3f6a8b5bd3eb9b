// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutate changes one critical line of a package at a time, runs the package's tests
// and lists the changes that no test catches. It does not modify the working tree.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var (
	sample = flag.Int("n", 0, "How many random mutants of each package to run. 0 runs all.")
	seed   = flag.Uint64("seed", 1, "The seed of the random choice.")
	swaps  = map[token.Token]string{
		token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<", token.SUB: "+",
		token.GTR: ">=", token.GEQ: ">", token.LAND: "||", token.LOR: "&&",
	}
	// Tests do not check log lines. The race detector and vet check locks and cancel.
	uninteresting = regexp.MustCompile(`^(defer )?([\w.]*(logger|klog)\.|[\w.]*(Lock|Unlock)\(|cancel\(\)|panic\()|^[\w, ]+ :=|^_ =`)
)

func main() {
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatalln("Error: no package with tests: PKG must be a directory tree that has some")
	}
	accepted, err := os.ReadFile("hack/mutate/accepted.txt")
	check(err)
	check(mutate(os.Stdout, string(accepted), flag.Args()))
}

func check(err error) {
	if err != nil {
		log.Fatalln("Error:", err)
	}
}

// mutate runs the mutants of the packages in the directories and lists those that survive.
func mutate(out io.Writer, accepted string, dirs []string) (errs error) {
	var killed, survived, known, invalid int
	for number, dir := range dirs {
		begin := time.Now()
		if output, err := test(mutant{file: dir + "/unchanged"}, 10*time.Minute); err != nil {
			errs = errors.Join(errs, fmt.Errorf("testing %s without a mutant: %w\n%s", dir, err, output))
			continue
		}
		timeout := 5*time.Since(begin) + 30*time.Second
		mutants := choose(dir)
		begin = time.Now()
		for i, m := range mutants {
			output, err := test(m, timeout)
			switch {
			case strings.Contains(string(output), "[build failed]"):
				invalid++
			case err != nil:
				killed++
			case strings.Contains(accepted, fmt.Sprintf("\n%s %s\n\t%s\n\t", m.file, m.function, m.change)):
				known++
			default:
				survived++
				fmt.Fprintf(out, "%s:%s\t%s\t%s\n", m.file, m.line, m.function, m.change)
			}
			left := time.Since(begin) / time.Duration(i+1) * time.Duration(len(mutants)-i-1)
			log.Printf("Package %d of %d, %s: %d of %d mutants run, about %v left", number+1, len(dirs), dir, i+1, len(mutants), left.Round(time.Second))
		}
	}
	fmt.Fprintf(out, "%d killed, %d survived, %d survived and accepted, %d did not compile\n", killed, survived, known, invalid)
	return errs
}

// mutant is a source file with one change.
type mutant struct{ file, line, function, change, source string }

// test runs the tests of the package with the mutant as an overlay and returns their output.
func test(m mutant, timeout time.Duration) ([]byte, error) {
	temp, err := os.MkdirTemp("", "mutate-")
	check(err)
	defer os.RemoveAll(temp)
	source, overlay := filepath.Join(temp, "source"), filepath.Join(temp, "overlay")
	check(os.WriteFile(source, []byte(m.source), 0o600))
	check(os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, filepath.Base(m.file), source), 0o600))
	command := exec.Command("go", "test", "-vet=off", "-failfast", "-count=1", "-timeout="+timeout.String(), "-overlay="+overlay, ".")
	command.Dir, command.Env = filepath.Dir(m.file), append(os.Environ(), "GOWORK=off")
	return command.CombinedOutput()
}

// choose returns the mutants of a package, or a random sample of them.
func choose(dir string) (mutants []mutant) {
	p, err := build.ImportDir(dir, 0)
	check(err)
	for _, name := range p.GoFiles {
		path := filepath.Join(dir, name)
		source, err := os.ReadFile(path)
		check(err)
		file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
		check(err)
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				mutants = append(mutants, find(mutant{file: path, function: fn.Name.Name, source: string(source)}, fn.Type, fn.Body)...)
			}
		}
	}
	if *sample > 0 {
		rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
		mutants = mutants[:min(*sample, len(mutants))]
	}
	return mutants
}

// find returns the mutants of a function, which start as copies of the original.
func find(original mutant, t *ast.FuncType, body *ast.BlockStmt) (mutants []mutant) {
	text := func(n ast.Node) string { return original.source[n.Pos()-1 : n.End()-1] }
	add := func(n ast.Node, change, replacement string) {
		m, before := original, original.source[:n.Pos()-1]
		m.line = fmt.Sprint(1 + strings.Count(before, "\n"))
		m.change = fmt.Sprintf("%.200s", strings.Join(strings.Fields(change), " "))
		m.source = before + replacement + original.source[n.End()-1:]
		mutants = append(mutants, m)
	}
	replace := func(e ast.Expr, other string) { add(e, text(e)+" -> "+other, "("+other+")") }
	remove := func(n ast.Node, change, instead string) {
		before := strings.TrimRight(original.source[:n.Pos()-1], "\t ")
		if inBlock := strings.ContainsAny(before[len(before)-1:], "\n{"); inBlock && !uninteresting.MatchString(text(n)) {
			add(n, change, "if false { "+text(n)+" }; "+instead) // keeps variables and imports in use
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			mutants = append(mutants, find(original, n.Type, n.Body)...)
			return false
		case *ast.IfStmt:
			if _, ok := n.Cond.(*ast.BinaryExpr); !ok {
				replace(n.Cond, strings.TrimPrefix("!"+text(n.Cond), "!!"))
			}
		case *ast.BinaryExpr:
			if other := swaps[n.Op]; other != "" {
				replace(n, text(n.X)+" "+other+" "+text(n.Y))
			}
			if text(n.Y) == "0" {
				replace(n, text(n.X)+" "+n.Op.String()+" 1")
			}
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.IncDecStmt, *ast.BranchStmt, *ast.AssignStmt:
			remove(n, "removed: "+text(n), "")
		case *ast.ReturnStmt:
			if n != body.List[len(body.List)-1] {
				remove(n, "removed: "+text(n), "")
			}
			if i := len(n.Results) - 1; i >= 0 && text(n.Results[i]) != "nil" && strings.HasSuffix(strings.TrimRight(text(t), ")"), "error") {
				other := strings.TrimSuffix(text(n), text(n.Results[i])) + "nil"
				remove(n, text(n)+" -> "+other, other)
			}
		}
		return true
	})
	return mutants
}

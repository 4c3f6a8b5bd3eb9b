// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of one line.
type mutant struct {
	id       int
	file     string // from the root of the repository
	line     int
	function string
	change   string // what is changed, without line numbers
	result   string
}

// key names the mutant also when lines move.
func (m mutant) key() string { return m.file + " " + m.function + "\n" + m.change }

// switches is the code that every mutated package gets: the variable that selects the
// mutant, and what runs when a removed return lets a function run past its end. Such a
// mutant would not compile, so it does not count.
const switches = `package %s

import (
	"os"
	"strconv"
)

var mutant_, _ = strconv.Atoi(os.Getenv("MUTANT"))

func pastTheEnd_() string { os.Exit(%d); return "" }
`

// instrument returns the source of a file with all its mutants. The variable mutant_ holds
// the number of the mutant that runs, so that a package compiles and links once for all its
// mutants. Lines keep their numbers.
func instrument(path, shown string, next int, skip map[int]bool) (string, []mutant, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	if ast.IsGenerated(file) {
		return string(src), nil, nil
	}
	in := &instrumenter{src: string(src), base: fset.File(file.Pos()).Base(), next: next, inserts: map[int]*insert{}}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		in.found = func(m mutant, at token.Pos) bool {
			m.file, m.line, m.function = shown, fset.Position(at).Line, nameOf(f)
			if skip[m.line] {
				return false
			}
			in.mutants = append(in.mutants, m)
			return true
		}
		in.function(f.Type, f.Body)
	}
	number(in.mutants)
	return in.render(), in.mutants, nil
}

// number tells equal changes of one function apart.
func number(mutants []mutant) {
	times := map[string]int{}
	for i := range mutants {
		m := &mutants[i]
		key := m.key()
		if times[key]++; times[key] > 1 {
			m.change += fmt.Sprintf(" (%d)", times[key])
		}
	}
}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// insert is what is put into the source at one place: first what closes, then what opens.
type insert struct{ closing, opening string }

type instrumenter struct {
	src     string
	base    int
	next    int
	found   func(mutant, token.Pos) bool
	mutants []mutant
	inserts map[int]*insert
}

func (in *instrumenter) text(from, to token.Pos) string {
	return in.src[int(from)-in.base : int(to)-in.base]
}

func (in *instrumenter) at(pos token.Pos) *insert {
	offset := int(pos) - in.base
	if in.inserts[offset] == nil {
		in.inserts[offset] = &insert{}
	}
	return in.inserts[offset]
}

func (in *instrumenter) render() string {
	var offsets []int
	for offset := range in.inserts {
		offsets = append(offsets, offset)
	}
	slices.Sort(offsets)
	var out strings.Builder
	from := 0
	for _, offset := range offsets {
		out.WriteString(in.src[from:offset] + in.inserts[offset].closing + in.inserts[offset].opening)
		from = offset
	}
	return out.String() + in.src[from:]
}

// mutate adds a mutant in which other stands for the node, unless other cannot stand on
// one line.
func (in *instrumenter) mutate(node ast.Node, other, change string, format, end string) {
	if strings.Contains(other, "//") || strings.Contains(other, "\n") && strings.Contains(other, "func(") {
		return
	}
	change = oneLine(change)
	if runes := []rune(change); len(runes) > 200 {
		change = string(runes[:197]) + "..."
	}
	if in.found(mutant{id: in.next, change: change}, node.Pos()) {
		in.at(node.Pos()).opening += fmt.Sprintf(format, in.next, oneLine(other), in.next)
		in.at(node.End()).closing = end + in.at(node.End()).closing // inner nodes come later
		in.next++
	}
}

func (in *instrumenter) expression(e ast.Expr, other string) {
	in.mutate(e, other, in.text(e.Pos(), e.End())+" -> "+other, "(mutant_ == %d && (%s) || mutant_ != %d && (", "))")
}

func (in *instrumenter) statement(s ast.Stmt, other string) {
	change := "removed: " + in.text(s.Pos(), s.End())
	if other != "" {
		change = in.text(s.Pos(), s.End()) + " -> " + other
	}
	in.mutate(s, other, change, "if mutant_ == %d { %s } else if mutant_ != %d {", "}")
}

var spaces = regexp.MustCompile(`\s+`)

func oneLine(s string) string { return spaces.ReplaceAllString(s, " ") }

// function mutates the body of a function, and ends it with a statement that returns.
func (in *instrumenter) function(t *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			in.function(n.Type, n.Body)
			return false
		case *ast.GenDecl:
			return false // of constants, perhaps
		case *ast.BlockStmt:
			in.statements(n.List, t, n == body)
		case *ast.CaseClause:
			in.statements(n.Body, t, false)
		case *ast.CommClause:
			in.statements(n.Body, t, false)
		case *ast.IfStmt:
			in.negate(n.Cond)
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				if n.Tag == nil {
					for _, e := range c.(*ast.CaseClause).List {
						in.negate(e)
					}
				}
			}
		case *ast.BinaryExpr:
			in.binary(n)
		}
		return true
	})
	if t.Results != nil {
		in.at(body.Rbrace).opening += "; panic(pastTheEnd_())"
	}
}

// negate negates a condition. For an equation, [instrumenter.binary] does.
func (in *instrumenter) negate(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); !ok || b.Op != token.EQL && b.Op != token.NEQ {
		in.expression(e, "!("+in.text(e.Pos(), e.End())+")")
	}
}

var otherOperator = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<",
	token.GTR: ">=", token.GEQ: ">", token.LAND: "||", token.LOR: "&&",
}

func (in *instrumenter) binary(e *ast.BinaryExpr) {
	operator, ok := otherOperator[e.Op]
	if !ok {
		return
	}
	left, right := in.text(e.Pos(), e.OpPos), in.text(e.OpPos+token.Pos(len(e.Op.String())), e.End())
	in.expression(e, left+operator+right)
	literal, ok := e.Y.(*ast.BasicLit)
	if number, err := strconv.Atoi(strings.TrimSpace(right)); ok && literal.Kind == token.INT && err == nil {
		in.expression(e, left+e.Op.String()+" "+strconv.Itoa(number+1))
	}
}

// Calls that tests cannot miss, or that other checks look for: logs, locks (the race
// detector) and cancel (go vet).
var uninteresting = regexp.MustCompile(`^(defer )?(([\w.]*(logger|klog|Lock|Unlock)\b.*)|cancel\(\)|panic\(.*)`)

func (in *instrumenter) statements(list []ast.Stmt, t *ast.FuncType, outermost bool) {
	for i, s := range list {
		text := oneLine(in.text(s.Pos(), s.End()))
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt:
			in.subtractions(s)
			if !uninteresting.MatchString(text) {
				in.statement(s, "")
			}
		case *ast.SendStmt, *ast.IncDecStmt:
			in.statement(s, "")
		case *ast.BranchStmt:
			if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
				in.statement(s, "")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !strings.HasPrefix(text, "_ =") {
				in.subtractions(s)
				in.statement(s, "")
			}
		case *ast.ReturnStmt:
			in.subtractions(s)
			in.returned(s, t)
			if !outermost || i < len(list)-1 {
				in.statement(s, "")
			}
		}
	}
}

// returned mutates the last value that a function returns: an error to nil, true to false.
func (in *instrumenter) returned(s *ast.ReturnStmt, t *ast.FuncType) {
	if len(s.Results) == 0 {
		return
	}
	results, last := t.Results.List, s.Results[len(s.Results)-1]
	kind, _ := results[len(results)-1].Type.(*ast.Ident)
	value := in.text(last.Pos(), last.End())
	if kind == nil || len(s.Results) < t.Results.NumFields() {
		return
	}
	other := map[string]string{"bool true": "false", "bool false": "true"}[kind.Name+" "+value]
	if kind.Name == "error" && value != "nil" {
		other = "nil"
	}
	if other != "" {
		in.statement(s, in.text(s.Pos(), last.Pos())+other)
	}
}

// subtractions makes additions of them. The other way round it would not compile for strings.
func (in *instrumenter) subtractions(s ast.Stmt) {
	ast.Inspect(s, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if ok && b.Op == token.SUB {
			in.statement(s, in.text(s.Pos(), b.OpPos)+"+"+in.text(b.OpPos+1, s.End()))
		}
		_, nested := n.(*ast.FuncLit)
		return !nested
	})
}

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A source is a file that may be broken.
type source struct {
	name string // relative to the root
	dir  string // of it, as given
	text []byte
}

const returnEarly = "return early"

// A mutant is a source with one thing in it replaced.
type mutant struct {
	src        *source
	line       int
	what       string
	start, end int    // what is replaced, in bytes
	by         string // what it is replaced with
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.src.name, m.line, m.what) }

// text is the file, broken. It has as many lines as before.
func (m mutant) text() []byte {
	old := m.src.text[m.start:m.end]
	by := m.by + strings.Repeat("\n", max(0, strings.Count(string(old), "\n")-strings.Count(m.by, "\n")))
	return slices.Concat(m.src.text[:m.start], []byte(by), m.src.text[m.end:])
}

// change is the lines that differ, before and after.
func (m mutant) change() (before, after string) {
	first := strings.LastIndexByte(string(m.src.text[:m.start]), '\n') + 1
	last := len(m.src.text)
	if i := strings.IndexByte(string(m.src.text[m.end:]), '\n'); i >= 0 {
		last = m.end + i
	}
	before = string(m.src.text[first:last])
	after = string(m.src.text[first:m.start]) + m.by + string(m.src.text[m.end:last])
	return before, after
}

func (m mutant) diff() string {
	before, after := m.change()
	var b strings.Builder
	write := func(sign, text string) {
		for line := range strings.Lines(text + "\n") {
			b.WriteString("    " + sign + line)
		}
	}
	write("-", before)
	write("+", after)
	return b.String()
}

// collect returns the mutants that can be made of the packages' files, by line.
func collect(root string, dirs []string) ([][]mutant, error) {
	var lines [][]mutant
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no Go files in %s", filepath.Join(root, dir))
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := mutants(&source{filepath.Join(dir, filepath.Base(file)), dir, text})
			if err != nil {
				return nil, err
			}
			lines = append(lines, found...)
		}
	}
	return lines, nil
}

// pick returns one mutant of each line, in random order. Almost every line can return early, and such a break is hard to overlook:
// they are made rare.
func pick(lines [][]mutant, random *rand.Rand) []mutant {
	var picked []mutant
	for _, i := range random.Perm(len(lines)) {
		m := lines[i][random.IntN(len(lines[i]))]
		if m.what != returnEarly || random.IntN(4) == 0 {
			picked = append(picked, m)
		}
	}
	return picked
}

// mutants returns those of one file, by line.
func mutants(src *source) ([][]mutant, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, src.name, src.text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{src: src, file: fset.File(file.FileStart)}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function(fn.Type, fn.Body)
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int { return cmp.Compare(a.line, b.line) })
	var lines [][]mutant
	for i, m := range f.found {
		if i == 0 || f.found[i-1].line != m.line {
			lines = append(lines, nil)
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], m)
	}
	return lines, nil
}

// A finder finds the mutants of a file.
type finder struct {
	src   *source
	file  *token.File
	found []mutant
}

func (f *finder) add(pos, end token.Pos, by, what string) {
	f.found = append(f.found, mutant{f.src, f.file.Line(pos), what, f.file.Offset(pos), f.file.Offset(end), by})
}

func (f *finder) text(n ast.Node) string {
	return string(f.src.text[f.file.Offset(n.Pos()):f.file.Offset(n.End())])
}

// function looks at a body. That of a function within has results of its own.
func (f *finder) function(sig *ast.FuncType, body *ast.BlockStmt) {
	early := f.early(sig)
	ast.Inspect(body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok {
			f.function(lit.Type, lit.Body)
			return false
		}
		switch n := n.(type) {
		case *ast.BlockStmt:
			f.statements(n.List, early)
		case *ast.CaseClause:
			f.statements(n.Body, early)
		case *ast.CommClause:
			f.statements(n.Body, early)
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			f.condition(n.Cond)
		case ast.Expr:
			f.expression(n)
		}
		return true
	})
}

// early is a statement that returns zero values.
func (f *finder) early(sig *ast.FuncType) string {
	var zeros []string
	if sig.Results != nil {
		for _, field := range sig.Results.List {
			for range max(1, len(field.Names)) {
				zeros = append(zeros, "*new("+f.text(field.Type)+")")
			}
		}
	}
	return strings.TrimSpace("return " + strings.Join(zeros, ", "))
}

func (f *finder) statements(list []ast.Stmt, early string) {
	for _, stmt := range list {
		f.statement(stmt)
		switch stmt.(type) {
		case *ast.ReturnStmt, *ast.LabeledStmt, *ast.EmptyStmt, *ast.CaseClause, *ast.CommClause:
		default:
			f.add(stmt.Pos(), stmt.Pos(), early+"; ", returnEarly)
		}
	}
}

func (f *finder) statement(stmt ast.Stmt) {
	drop := func() { f.add(stmt.Pos(), stmt.End(), "", "drop the statement") }
	switch s := stmt.(type) {
	case *ast.ExprStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
		drop()
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE && !blank(s.Lhs) {
			drop()
		}
	case *ast.IncDecStmt:
		drop()
		by := map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}[s.Tok]
		f.add(s.TokPos, s.End(), by.String(), "count the other way")
	case *ast.BranchStmt:
		if by := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[s.Tok]; by != "" {
			f.add(s.Pos(), s.Pos()+token.Pos(len(s.Tok.String())), by, by+" instead")
		}
	case *ast.ReturnStmt:
		if n := len(s.Results); n > 0 && f.text(s.Results[n-1]) == "err" {
			f.add(s.Results[n-1].Pos(), s.End(), "nil", "lose the error")
		}
	}
}

func blank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

func (f *finder) condition(cond ast.Expr) {
	if cond != nil {
		f.add(cond.Pos(), cond.End(), "!("+f.text(cond)+")", "negate the condition")
	}
}

var (
	swaps = map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	}
	names = map[string]string{"true": "false", "false": "true", "min": "max", "max": "min"}
)

func (f *finder) expression(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if by, ok := swaps[e.Op]; ok {
			f.add(e.OpPos, e.OpPos+token.Pos(len(e.Op.String())), by.String(), fmt.Sprintf("%v instead of %v", by, e.Op))
		}
	case *ast.BasicLit:
		if e.Kind == token.INT {
			f.add(e.Pos(), e.End(), "("+e.Value+" + 1)", "one more")
			f.add(e.Pos(), e.End(), "("+e.Value+" - 1)", "one less")
		}
	case *ast.Ident:
		if by, ok := names[e.Name]; ok {
			f.add(e.Pos(), e.End(), by, by+" instead of "+e.Name)
		}
	}
}

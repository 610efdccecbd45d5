package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parse returns the one mapping in data, nil if there is nothing. Its error begins with the line.
func parse(data []byte) (root *ast.MappingNode, err error) {
	if !utf8.Valid(data) {
		return nil, errors.New(" must be UTF-8")
	}
	defer func() { // the parser is not ours, and a reload must not end the program
		if v := recover(); v != nil {
			root, err = nil, fmt.Errorf(" cannot be read as YAML: %v", v)
		}
	}()
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	if line := tooDeep(data); line > 0 {
		return nil, fmt.Errorf("%d: must not be nested deeper than %d", line, maxDepth)
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if e, ok := errors.AsType[*yaml.SyntaxError](err); ok && e.Token != nil {
			return nil, fmt.Errorf("%d: is not YAML: %s", e.Token.Position.Line, e.Message)
		}
		return nil, fmt.Errorf(" is not YAML: %w", err)
	}
	for _, doc := range file.Docs {
		switch n := doc.Body.(type) {
		case nil, *ast.NullNode, *ast.CommentGroupNode:
			continue
		default:
			if root != nil {
				return nil, fmt.Errorf("%d: must be one document, and here a second begins", lineOf(n, 1))
			}
			if root = mappingOf(n); root == nil {
				return nil, fmt.Errorf("%d: must be a mapping of keys to values, got %s", lineOf(n, 1), value{n})
			}
		}
	}
	return root, nil
}

// maxDepth is how deep lists and mappings may be in each other. The parser calls itself for each, and takes time by the square of
// their number. No key needs more than three.
const maxDepth = 50

// indicators are those with which a line may begin again and again.
var indicators = regexp.MustCompile(`^[ \t]*(?:[-?:!&*][^ \t]*[ \t]+){50}`)

// tooDeep returns the first line that is nested too deep, 0 if none is. It takes brackets for what they look like, in
// texts and comments too: there they come in pairs, or not that often.
func tooDeep(data []byte) (line int) {
	depth := 0
	for text := range bytes.Lines(data) {
		line++
		for _, b := range text {
			switch b {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > maxDepth {
				return line
			}
		}
		if indicators.Match(text) {
			return line
		}
	}
	return 0
}

// mappingOf returns n if it is a mapping, nil if it is not. One with no values is one.
func mappingOf(n ast.Node) *ast.MappingNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n
	case *ast.MappingValueNode:
		return &ast.MappingNode{BaseNode: n.BaseNode, Values: []*ast.MappingValueNode{n}}
	}
	return nil
}

func keyOf(entry *ast.MappingValueNode) (name string, line int) {
	line = lineOf(entry.Key, 1)
	if n, ok := entry.Key.(*ast.StringNode); ok {
		return n.Value, line
	}
	return entry.Key.String(), line
}

func lineOf(n ast.Node, otherwise int) int {
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			return t.Position.Line
		}
	}
	return otherwise
}

// A value is one in the file, still to be understood.
type value struct{ node ast.Node }

const (
	off          = "off"
	acceptedBool = "true or false"
)

// What is wrong with a value. The message that it is in says what is accepted.
var (
	errKind   = errors.New("the value is of another kind")
	errAnchor = errors.New("anchors, aliases and tags are not supported")
	errUnit   = errors.New("a number needs a unit")
)

// hint is what a message should say besides.
func hint(err error) string {
	if errors.Is(err, errAnchor) || errors.Is(err, errUnit) {
		return "; " + err.Error()
	}
	return ""
}

// String returns the value as it may be shown in a message: on one line, and not too long.
func (v value) String() string {
	switch n := v.node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return shorten(strconv.Quote(n.Value))
	case *ast.LiteralNode:
		return shorten(strconv.Quote(n.Value.Value))
	default:
		return shorten(strings.Join(strings.Fields(n.String()), " "))
	}
}

// most is how many letters of what stands in a file are shown.
const most = 60

// shorten cuts off what is beyond.
func shorten(text string) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}

func (v value) wrong() error {
	switch v.node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return errAnchor
	}
	return errKind
}

// is reports whether the value is a word, however it is written.
func (v value) is(word string) bool {
	n, ok := v.node.(*ast.StringNode)
	return ok && strings.EqualFold(n.Value, word)
}

// text returns a string that is not empty.
func (v value) text() (string, error) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		if n.Value != "" {
			return n.Value, nil
		}
	case *ast.LiteralNode:
		if text := strings.TrimSpace(n.Value.Value); text != "" {
			return text, nil
		}
	}
	return "", v.wrong()
}

// target returns a target: text, or a mapping of url and what is said of it, which becomes text.
func (v value) target() (string, error) {
	m := mappingOf(v.node)
	if m == nil {
		return v.text()
	}
	url, said := "", ""
	seen := map[string]bool{}
	for _, entry := range m.Values {
		name, _ := keyOf(entry)
		text, err := value{entry.Value}.word()
		switch {
		case err != nil:
			return "", err
		case seen[name]:
			return "", errKind
		case name == "url":
			url = text
		case name == "weight" || name == "zone" || name == "priority" || name == "host":
			said += " " + name + "=" + text
		default:
			return "", errKind
		}
		seen[name] = true
	}
	if url == "" {
		return "", errKind
	}
	return url + said, nil
}

// word returns a number or a text without spaces.
func (v value) word() (string, error) {
	if i, err := v.integer(); err == nil {
		return strconv.Itoa(i), nil
	}
	text, err := v.text()
	if err == nil && strings.ContainsAny(text, " \t") {
		err = errKind
	}
	return text, err
}

func (v value) boolean() (bool, error) {
	if n, ok := v.node.(*ast.BoolNode); ok {
		return n.Value, nil
	}
	return false, v.wrong()
}

func (v value) integer() (int, error) {
	if n, ok := v.node.(*ast.IntegerNode); ok {
		switch i := n.Value.(type) {
		case int64:
			if i >= math.MinInt && i <= math.MaxInt {
				return int(i), nil
			}
		case uint64:
			if i <= math.MaxInt {
				return int(i), nil
			}
		}
	}
	return 0, v.wrong()
}

func (v value) number() (float64, error) {
	if n, ok := v.node.(*ast.FloatNode); ok {
		return n.Value, nil
	}
	i, err := v.integer()
	return float64(i), err
}

// duration reads 1m30s. A bare number is nobody knows what, unless it is 0.
func (v value) duration() (time.Duration, error) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		if d, err := time.ParseDuration(n.Value); err == nil {
			return d, nil
		}
	case *ast.IntegerNode:
		if i, err := v.integer(); err == nil && i == 0 {
			return 0, nil
		}
		return 0, errUnit
	case *ast.FloatNode:
		return 0, errUnit
	}
	return 0, v.wrong()
}

// bytes reads 65536, 64KiB or 64kB.
func (v value) bytes() (int64, error) {
	if i, err := v.integer(); err == nil {
		return int64(i), nil
	}
	if n, ok := v.node.(*ast.StringNode); ok {
		if b, err := humanize.ParseBytes(n.Value); err == nil && b <= math.MaxInt64 {
			return int64(b), nil
		}
	}
	return 0, v.wrong()
}

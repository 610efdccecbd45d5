package main

import (
	"os"
	"regexp"
	"strings"
)

// equivalents are the mutants that do the same as what they were made from, and why.
type equivalents map[string]string

// key tells a mutant by its file and the lines that differ, because numbers of lines do not last.
func (m mutant) key() string {
	before, after := m.change()
	return key(m.src.name, before, after)
}

func key(file, before, after string) string {
	return strings.Join([]string{file, tidy(before), tidy(after)}, "\x00")
}

func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }

// An entry is an item of a list: - `file`: `before` → `after`: why. What was dropped has two back-quotes with a space between.
var entry = regexp.MustCompile("^- `([^`]+)`: `([^`]+)` → `([^`]+)`: (.+)$")

func readEquivalent(file string) (equivalents, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	known := equivalents{}
	for line := range strings.Lines(string(text)) {
		if m := entry.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			known[key(m[1], m[2], m[3])] = m[4]
		}
	}
	return known, nil
}

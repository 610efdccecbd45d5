package config

import (
	"slices"
	"strconv"
	"strings"
)

// printable returns a key that nobody knows as it may be shown in a message.
func printable(key string) string {
	if strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" && key != "" {
		return shorten(key)
	}
	return shorten(strconv.Quote(key))
}

// listOf returns the names of known, sorted.
func listOf(known map[string]field) string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// suggest says which key was meant, or which there are.
func suggest(name, prefix string, known map[string]field) string {
	best, distance := "", 3
	for other := range known {
		if n := edits(name, other); n < distance || n == distance && other < best {
			best, distance = other, n
		}
	}
	if best != "" {
		return "is it " + prefix + best + " that is meant?"
	}
	return "accepted: " + listOf(known)
}

// edits returns how many letters have to be put in, taken out or exchanged to make b of a (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

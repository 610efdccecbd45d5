// Package version says which build of belfry this is, from what the Go toolchain stored in the binary.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// String returns one line: version, commit and its time if known, Go version and platform.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) string {
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "devel"
	}
	line := "belfry " + version
	if source := commit(info); source != "" {
		line += " (" + source + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", line, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit returns the commit's first digits, its time, and whether the tree was changed: "1a2b3c4d5e6f, 2026-03-01, modified".
func commit(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	var parts []string
	if revision := settings["vcs.revision"]; revision != "" {
		parts = append(parts, revision[:min(len(revision), 12)])
	}
	if day, _, ok := strings.Cut(settings["vcs.time"], "T"); ok {
		parts = append(parts, day)
	}
	if settings["vcs.modified"] == "true" {
		parts = append(parts, "modified")
	}
	return strings.Join(parts, ", ")
}

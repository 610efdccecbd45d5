package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	platform := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"nothing known", debug.BuildInfo{}, "belfry devel"},
		{"a build in the work tree", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "belfry devel"},
		{"a released version", debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, "belfry v0.1.0"},
		{"a commit", debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123"},
			{Key: "vcs.time", Value: "2026-03-01T10:00:00Z"},
			{Key: "vcs.modified", Value: "true"},
		}}, "belfry devel (0123456789ab, 2026-03-01, modified)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(&c.info); got != c.want+platform {
				t.Errorf("got %q, want %q", got, c.want+platform)
			}
		})
	}
	if got := String(); !strings.HasPrefix(got, "belfry ") || strings.Contains(got, "\n") {
		t.Errorf("this binary says %q", got)
	}
}

package proxy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTargetsHaveOneSpelling(t *testing.T) {
	got, err := ParseTargets([]string{"http://A.example", " https://b.example/ ", "http://[0:0::1]:8080", "HTTP://127.0.0.1:080"})
	want := []string{"http://a.example:80", "https://b.example:443", "http://[::1]:8080", "http://127.0.0.1:80"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestABadTargetIsRefusedByName(t *testing.T) {
	for _, c := range []struct {
		targets string
		want    string
	}{
		{"", "there is an empty one"},
		{"http://a,,http://b", "there is an empty one"},
		{"http://a,http://a", `"http://a" and "http://a" are the same`},
		{"http://a,http://A:80/", `"http://a" and "http://A:80/" are the same`},
		{"https://a,https://a:443", "are the same"},
		{"http://[::1]:80,http://[0:0::1]", "are the same"},
		{"a", `"a" has no http:// or https://`},
		{"a:80", `"a:80" has no http:// or https://`},
		{"127.0.0.1:80", "has no http:// or https://"},
		{"http:a", "has no http:// or https://"},
		{"ftp://a", `has an unsupported scheme, "ftp"`},
		{"://a", "has a mistake"},
		{"http://", "has no host"},
		{"h2c://::1", "has a host that is neither a name nor an address"},
		{"http://:80", "has no host"},
		{"http://a:", "has no port after the colon"},
		{"http://a:0", "has a port, 0, that is not from 1 to 65535"},
		{"http://a:65536", "has a port, 65536, that is not from 1 to 65535"},
		{"http://a:x", "has a mistake"},
		{"http://[::1", "has a mistake"},
		{"http://%zz", "has a mistake"},
		{"http://a b", "has a mistake"},
		{"http://u@a", "has a user or a password"},
		{"http://a/x", `"http://a/x" has a path`},
		{"http://a//", "has a path"},
		{"http://a?", "has a query"},
		{"http://a?x=1", "has a query"},
		{"http://a#f", "has a fragment"},
	} {
		_, err := ParseTargets(strings.Split(c.targets, ","))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "--to must be "+AcceptedTargets) {
			t.Errorf("%q: %v, want --to and %s", c.targets, err, c.want)
		}
	}
	if _, err := ParseTargets(nil); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("no target: %v", err)
	}
}

func TestValidateNamesFlagAndRange(t *testing.T) {
	good := Defaults()
	good.Targets = []string{"http://a"}
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Listen = "" }, "--listen must be host:port"},
		{func(c *Config) { c.Listen = "a" }, "--listen must be host:port"},
		{func(c *Config) { c.Listen = "a:http" }, "--listen must be host:port"},
		{func(c *Config) { c.Listen = "a:65536" }, "--listen must be host:port"},
		{func(c *Config) { c.Targets = nil }, "--to must be http://"},
		{func(c *Config) { c.Buffer = 0 }, "--buffer must be 1 to 1000000, got 0"},
		{func(c *Config) { c.Limit = -1 }, "--limit must be 1 to 1000000, got -1"},
		{func(c *Config) { c.EndpointLimit = maxPlaces + 1 }, "--endpoint-limit must be 1 to 1000000, got 1000001"},
		{func(c *Config) { c.BufferWait = 0 }, "--buffer-wait must be 1ms to 10m, got 0s"},
		{func(c *Config) { c.Timeout = -time.Second }, "--timeout must be 1ms to 1h, got -1s"},
		{func(c *Config) { c.Timeout = 2 * time.Hour }, "--timeout must be 1ms to 1h, got 2h0m0s"},
		{func(c *Config) { c.Attempts = 0 }, "--attempts must be 1 to 10, got 0"},
		{func(c *Config) { c.Attempts = 11 }, "--attempts must be 1 to 10, got 11"},
		{func(c *Config) { c.RetryRatio = -0.1 }, "--retry-ratio must be 0 to 1, got -0.1"},
		{func(c *Config) { c.RetryRatio = math.NaN() }, "--retry-ratio must be 0 to 1, got NaN"},
		{func(c *Config) { c.ReplayBytes = -1 }, "--replay-bytes must be 0 to 16MiB, got -1"},
		{func(c *Config) { c.ReplayBytes = maxReplay + 1 }, "--replay-bytes must be 0 to 16MiB, got 16777217"},
		{func(c *Config) { c.Drain = -1 }, "--drain must be 0s to 1h, got -1ns"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	for listen, self := range map[string]bool{
		"127.0.0.1:80": true, ":80": true, "0.0.0.0:80": true, "[::]:80": true, "localhost:80": true,
		"127.0.0.2:80": false, "127.0.0.1:81": false, "10.0.0.1:80": false, "127.0.0.1:0": false,
	} {
		c := good
		c.Listen, c.Targets = listen, []string{"http://other", "http://127.0.0.1"}
		if err := c.Validate(); (err != nil) != self {
			t.Errorf("--listen %s in front of 127.0.0.1:80: %v", listen, err)
		}
	}
	for _, listen := range []string{":0", ":80", "[::1]:80", "localhost:65535"} {
		fine := good
		fine.Listen = listen
		if err := fine.Validate(); err != nil {
			t.Errorf("--listen %s is refused: %v", listen, err)
		}
	}
}

package config

import (
	"slices"
	"strings"
	"testing"
)

func TestTargetsWithAttributes(t *testing.T) {
	cfg, err := Parse("f", []byte(`
targets:
  - http://a:80 weight=98 zone=eu-1
  - {url: http://b:80, weight: 1, zone: eu-2, priority: 1}
  - url: dns:///c:80
    host: rack7
zone: eu-1
sticky: {cookie: session}
cost_bytes: 64KiB
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"http://a:80 weight=98 zone=eu-1", "http://b:80 weight=1 zone=eu-2 priority=1", "dns:///c:80 host=rack7"}
	if !slices.Equal(cfg.Targets, want) || cfg.Zone != "eu-1" || cfg.Sticky.Cookie != "session" || cfg.CostBytes != 65536 {
		t.Errorf("got %q, %q, %+v and %d", cfg.Targets, cfg.Zone, cfg.Sticky, cfg.CostBytes)
	}
	for text, says := range map[string]string{
		"targets: [{weight: 1}]":                                  "targets[0] must be",
		"targets: [{url: 'http://a', color: red}]":                "targets[0] must be",
		"targets: [{url: 'http://a', zone: 'a b'}]":               "targets[0] must be",
		"targets: ['http://a weight=0']":                          "weight must be 1 to 1000000",
		"targets: ['http://a weight=1', 'http://a zone=b']":       "are the same",
		"targets: ['http://a']\nzone: 'a b'":                      "zone must be",
		"targets: ['http://a']\nsticky: {header: a, cookie: b}":   "sticky must be",
		"targets: ['http://a']\ncost_bytes: -1":                   "cost_bytes must be",
		"targets: ['http://a']\ndecisions: -1":                    "decisions must be 0 to 100000, got -1",
		"targets: ['http://a']\ndecisions: 100001":                "decisions must be 0 to 100000, got 100001",
		"targets: ['http://a']\ndecisions: many":                  "decisions must be 0 to 100000",
		"targets: ['http://a']\nper_address: 0":                   "per_address must be 1 to 100, got 0",
		"targets: ['http://a']\nrotate_every: 900ms":              "rotate_every must be 1s to 24h",
		"targets: ['http://a']\nrotate_every: 3s\nper_address: 4": "rotate_every must be 1s to 24h for each of per_address, got 3s",
		"targets: ['http://a']\nwarm: -1":                         "warm must be 0 to 1000",
		"targets: ['http://a']\nwarm: 9\nendpoint_limit: 8":       "warm must be 0 to 1000, and no more than endpoint_limit, got 9",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error with %q", text, err, says)
		}
	}
}

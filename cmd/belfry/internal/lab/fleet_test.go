package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

func TestTheExampleSaysEverything(t *testing.T) {
	f, err := ParseFleet("example", []byte(ExampleFleet()))
	if err != nil {
		t.Fatal(err)
	}
	servers := f.servers()
	if len(servers) != 11 || !servers[0].Queue || servers[10].Queue {
		t.Errorf("%d servers: %+v", len(servers), servers)
	}
	last := servers[10]
	if len(last.Windows) != 3 || last.Here[0] != (sim.Span{From: 20 * second, Until: sim.Never}) {
		t.Errorf("the last: %+v", last)
	}
	if w := last.Windows[0]; w.Slow != 5 || w.From != 20*second || w.Until != 30*second {
		t.Errorf("slow: %+v", w)
	}
	if w := last.Windows[1]; w.Fails != 0.5 || w.FailsIn != 1000 {
		t.Errorf("fail: %+v", w)
	}
	if !last.Windows[2].Hangs {
		t.Errorf("hang: %+v", last.Windows[2])
	}
}

func TestAFleetIsRefusedWithWhatIsAccepted(t *testing.T) {
	const servers = "\nservers: [{latency: 1ms}]"
	for text, want := range map[string]string{
		"":                                    "servers: must be 1 to 10000, got 0",
		"- 1":                                 "f.yaml:1",
		"rate: [":                             "f.yaml",
		"bogus: 1":                            "f.yaml:1: unknown field",
		"rate: fast" + servers:                "f.yaml:1",
		"servers: [{latency: 1ms}]":           "rate: must be given, or concurrency",
		"rate: 5\nconcurrency: 5" + servers:   "rate: must be given, or concurrency",
		"rate: 0.1" + servers:                 "rate: times duration must be 100 to 20000000 requests, got 6",
		"rate: 1e9" + servers:                 "rate: times duration",
		"rate: .nan" + servers:                "rate: times duration",
		"rate: 100\nclients: -1" + servers:    "clients: must be 1 to 1000, got -1",
		"rate: 100\nduration: 1ms" + servers:  "duration: must be 1s to 24h0m0s, got 1ms",
		"rate: 100\ntimeout: -1s" + servers:   "timeout: must be at least 0, got -1s",
		"rate: 100\narrivals: odd" + servers:  `arrivals: must be random or even, got "odd"`,
		"concurrency: -1" + servers:           "concurrency: must be 1 to",
		"rate: 100\nservers: [{}]":            "servers[0].latency: must be given, or quantiles",
		"rate: 100\nservers: [{latency: 5h}]": "servers[0].latency: must be 1µs to 1h, got 5h",
		"rate: 100\nservers: [{latency: 1ms, spread: wide}]":                                 `servers[0].spread: must be exponential, constant or uniform, got "wide"`,
		"rate: 100\nservers: [{latency: 1ms, count: -2}]":                                    "servers[0].count: must be 1 to 10000, got -2",
		"rate: 100\nservers: [{latency: 1ms, joins: 60s}]":                                   "servers[0].joins: must be 0 to before the end",
		"rate: 100\nservers: [{latency: 1ms, joins: 20s, leaves: 10s}]":                      "servers[0].leaves: must be later than joins",
		"rate: 100\nservers: [{quantiles: {0.1: 1ms, 1: 2ms}}]":                              "servers[0].quantiles: must begin at 0 and end at 1",
		"rate: 100\nservers: [{quantiles: {0: 3ms, 1: 2ms}}]":                                "servers[0].quantiles: latencies must not fall",
		"rate: 100\nservers: [{latency: 1ms, trouble: [{kind: odd}]}]":                       `servers[0].trouble[0].kind: must be slow, fail or hang, got "odd"`,
		"rate: 100\nservers: [{latency: 1ms, trouble: [{kind: slow, factor: -1}]}]":          "servers[0].trouble[0].factor: must be above 0",
		"rate: 100\nservers: [{latency: 1ms, trouble: [{kind: fail, share: 2}]}]":            "servers[0].trouble[0].share: must be above 0 and at most 1, got 2",
		"rate: 100\nservers: [{latency: 1ms, trouble: [{kind: hang, from: 9s, until: 8s}]}]": "servers[0].trouble[0].until: must be later than from",
	} {
		if _, err := ParseFleet("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", text, err, want)
		}
	}
}

func TestAFleetRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	const text = "concurrency: 3\nservers:\n  - {count: 2, latency: 10ms, spread: constant}\n  - {latency: 10ms, spread: uniform, trouble: [{kind: fail, until: 24h}]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := LoadFleet(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sim.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	o := f.run(p, 1)
	if got := valueOf(o, "failed"); got < 0.32 || got > 0.35 {
		t.Errorf("%v failed, want a third", got)
	}
	if got := valueOf(o, "p99"); got != 10 {
		t.Errorf("p99 %v ms, want 10", got)
	}
	if _, err := LoadFleet(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a file that is not there is read")
	}
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

func TestLabListNamesEverything(t *testing.T) {
	code, stdout, stderr := run("lab", "list")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range append(lab.Names(), "fleet-equal/10", "peak-ewma-penalty", "jsq-oracle", "default/1s") {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

func TestLabRun(t *testing.T) {
	code, stdout, stderr := run("lab", "run", "streams", "--policy", "random,default", "--seed", "3", "--seeds", "2")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"streams: ", "seeds 3 to 4", "least of fair", "\nrandom ", "\ndefault "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

func TestLabRunWritesJSON(t *testing.T) {
	code, stdout, stderr := run("lab", "run", "one-stuck/2-at-20", "--json", "--seed", "9")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	var got struct {
		Scenario string
		Seed     uint64
		Rows     []struct {
			Policy  string
			Figures map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Scenario != "one-stuck/2-at-20" || got.Seed != 9 || len(got.Rows) != 4 {
		t.Errorf("%+v", got)
	}
	for _, row := range got.Rows {
		if share := row.Figures["2-at-20.share"]; share <= 0 || share >= 1 {
			t.Errorf("%s: figures %v", row.Policy, row.Figures)
		}
	}
}

// fleet is a file that describes a small fleet.
func fleet(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const small = "rate: 100\nduration: 5s\nservers: [{count: 3, latency: 10ms, queue: true}]\n"

func TestLabAdvise(t *testing.T) {
	code, stdout, stderr := run("lab", "advise", fleet(t, small), "--seeds", "1")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"your-own: 3 servers for 5s", "p2c-oracle", "\nTake ", "than random: ", "It loses"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

func TestLabRunTakesAFleet(t *testing.T) {
	code, stdout, stderr := run("lab", "run", "your-own", "--fleet", fleet(t, small), "--policy", "default")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "3 servers") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestLabReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "saved.json")
	saved := `{"decisions":[{"at":"2026-01-02T12:00:00Z","chosen":"a","ended":"success","took_ms":3,"candidates":[{"endpoint":"a"},{"endpoint":"b","latency_ms":9}]}]}`
	if err := os.WriteFile(path, []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run("lab", "replay", path, "--policy", "random,default/1s")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"1 decision over 0s among 2 endpoints", "means over seeds 1 to 5", "\nrecorded ", "\nrandom ", "\ndefault/1s ", "#1 a: 1 answer,"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	code, _, stderr = run("lab", "replay", path, "--policy", "guess")
	if code != ExitUsage || !strings.Contains(stderr, "guess") || !strings.Contains(stderr, "round-robin") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestLabRefusesWithWhatIsAccepted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"run"}, []string{"accepted: balls"}},
		{[]string{"run", "nonsense"}, []string{"nonsense", "accepted: balls", "your-own"}},
		{[]string{"run", "fleet-equal/7"}, []string{`part "7"`, "fleet-equal/10"}},
		{[]string{"run", "hang", "--policy", "guess"}, []string{"guess", "round-robin", "default/1s"}},
		{[]string{"run", "hang", "--policy", "random/1s"}, []string{"random/1s", "accepted"}},
		{[]string{"run", "hang", "--policy", "default/x"}, []string{"default/x", "1ms and 24h"}},
		{[]string{"run", "outage", "--policy", "random"}, []string{"random", "no-budget, unmarked, default"}},
		{[]string{"run", "hang", "--seeds", "0"}, []string{"--seeds", "1 to 1000", "got 0"}},
		{[]string{"run", "hang", "--seed", "-1"}, []string{"--seed", "0 to 18446744073709551615"}},
		{[]string{"run", "hang", "--fleet", "x.yaml"}, []string{"--fleet", "your-own"}},
		{[]string{"run", "your-own", "--fleet", "none.yaml"}, []string{"none.yaml"}},
		{[]string{"replay", "none.json"}, []string{"none.json"}},
		{[]string{"advise", "none.yaml"}, []string{"none.yaml"}},
		{[]string{"advise", fleet(t, "rate: 100\nservers: [{latency: 1ms, spread: wide}]")}, []string{"servers[0].spread", "exponential, constant or uniform", `"wide"`}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, stdout, stderr := run(append([]string{"lab"}, c.args...)...)
			if code != ExitUsage || stdout != "" {
				t.Errorf("exit code %d, stdout %q, want %d and nothing", code, stdout, ExitUsage)
			}
			for _, want := range append(c.want, "Try: belfry lab") {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is missing in %q", want, stderr)
				}
			}
		})
	}
}

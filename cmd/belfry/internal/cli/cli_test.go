package cli

import (
	"bytes"
	"strings"
	"testing"
)

// run runs belfry in this process, which only what ends by itself may be.
func run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(args, Process{Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }})
	return code, out.String(), errs.String()
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"", []string{"demo", "proxy", "version"}},
		{"--help", []string{"demo", "proxy", "version"}},
		{"explain --help", []string{"<endpoint>", "--admin=ADDR", "belfry lab replay"}},
		{"lab replay --help", []string{"<file>", "--policy=NAME,...", "--seeds=5", "random, round-robin", "believe large"}},
		{"demo --help", []string{"--scenario=", "spread, slow,", "cold-start", "--duration=5s", "100ms to", "--rate=N", "1 to 10000", "--seed=1", "--json", "belfry demo --rate", "Exit codes"}},
		{"proxy --help", []string{
			"--listen=ADDR", "--to=URL,...", "--endpoint-limit=256", "--limit=1024", "--buffer=512", "--buffer-wait=5s", "--timeout=30s",
			"--attempts=3", "--retry-ratio=0.2", "--replay-bytes=64KiB", "--drain=30s", "--log-level=LEVEL", "belfry proxy --to http://", "SIGTERM",
		}},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := run(strings.Fields(c.args)...)
			if code != 0 || stderr != "" {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("%q is missing in\n%s", want, stdout)
				}
			}
			for line := range strings.Lines(stdout) {
				if n := len([]rune(line)); n > 81 {
					t.Errorf("a line takes %d columns: %s", n-1, line)
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := run("version")
	if code != 0 || !strings.HasPrefix(stdout, "belfry ") || strings.Count(stdout, "\n") != 1 || stderr != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestABadCommandLineIsRefusedWithWhatIsAccepted(t *testing.T) {
	const targets = "http://host[:port], https://host[:port], h2c://host[:port], dns:///host:port"
	for _, c := range []struct {
		args string
		want []string
	}{
		{"nonsense", []string{"nonsense", "belfry --help"}},
		{"explain", []string{"<endpoint>"}},
		{"demo extra", []string{"extra", "belfry demo --help"}},
		{"demo --bogus", []string{"--bogus"}},
		{"demo --rate 0", []string{"--rate", "1 to 10000", "got 0"}},
		{"demo --rate -3", []string{"--rate", "1 to 10000", "got -3"}},
		{"demo --rate 1e9", []string{"--rate", "1 to 10000", "1e9"}},
		{"demo --rate 99999999999999999999999", []string{"--rate", "1 to 10000"}},
		{"demo --duration -5s", []string{"--duration", "100ms to 10m", "-5s"}},
		{"demo --duration 6", []string{"--duration", "100ms to 10m"}},
		{"demo --duration 1000h", []string{"--duration", "100ms to 10m", "1000h"}},
		{"demo --scenario slo", []string{"--scenario", "spread, slow, hang, fast-fail, cold-start, one-stuck", `"slo"`}},
		{"demo --scenario=", []string{"--scenario", "spread, slow, hang, fast-fail, cold-start, one-stuck", `""`}},
		{"demo --seed -1", []string{"--seed", "0 to 18446744073709551615"}},
		{"proxy", []string{"--to", targets, "none"}},
		{"proxy --to=", []string{"--to", targets, "none"}},
		{"proxy --to ,", []string{"--to", targets, "empty"}},
		{"proxy --to http://a,http://A:80/", []string{"--to", targets, "are the same"}},
		{"proxy --to http://a --to http://a", []string{"--to", targets, "are the same"}},
		{"proxy --to ftp://a", []string{"--to", targets, `scheme, "ftp"`}},
		{"proxy --to http://a/x", []string{"--to", targets, `"http://a/x" has a path`}},
		{"proxy --to http://a?x", []string{"--to", targets, "query"}},
		{"proxy --to a:80", []string{"--to", targets, "no http:// or https://"}},
		{"proxy --to http://a --listen foo", []string{"--listen", "host:port", `"foo"`}},
		{"proxy --to http://a --log-level loud", []string{"--log-level", "debug, info, warn or error", `"loud"`}},
		{"proxy --to http://a --limit 0", []string{"--limit", "1 to 1000000", "got 0"}},
		{"proxy --to http://a --timeout x", []string{"--timeout", "1ms to 1h", `"x"`}},
		{"proxy --to http://a --replay-bytes many", []string{"--replay-bytes", "0 to 16MiB", "64KiB", `"many"`}},
		{"proxy --to http://a --replay-bytes 17MiB", []string{"--replay-bytes", "0 to 16MiB"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := run(strings.Fields(c.args)...)
			if code != ExitUsage || stdout != "" {
				t.Errorf("exit code %d, stdout %q, want %d and nothing", code, stdout, ExitUsage)
			}
			for _, want := range append(c.want, "Try: belfry") {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is missing in %q", want, stderr)
				}
			}
			if n := strings.Count(stderr, "accept"); n > 1 {
				t.Errorf("says twice what is accepted: %q", stderr)
			}
		})
	}
}

func TestBytesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "65536": 65536, "64KiB": 65536, "64kB": 64000, "1MiB": 1 << 20} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || int64(b) != want {
			t.Errorf("%s reads %d, %v", text, b, err)
		}
		var again byteSize
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%s is written %s and reads %d, %v", text, b, again, err)
		}
	}
}

package config

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

const example = "../../belfry.example.yaml"

func TestTheExample(t *testing.T) {
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(example); err != nil {
		t.Errorf("as it is: %v", err)
	}
	data = uncommented(data)
	got, err := Parse(example, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("says what it says", func(t *testing.T) {
		want := proxy.Defaults()
		want.TLS = proxy.ListenTLS{Cert: "/etc/belfry/tls.crt", Key: "/etc/belfry/tls.key"}
		want.TrustedForwarders = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::7/128")}
		want.Decisions = 1000
		want.Zone, want.Sticky, want.CostBytes = "eu-1", proxy.Sticky{Header: "X-User"}, 1<<20
		want.Targets = []string{"http://127.0.0.1:3002 weight=2 zone=eu-1", "http://127.0.0.1:3003 zone=eu-2 priority=1", "http://127.0.0.1:3001", "https://backend.example", "dns:///backend.internal:8443?scheme=https"}
		want.Warm, want.RotateEvery = 4, 10*time.Minute
		want.DiscoveryInterval = 10 * time.Second
		want.TargetTLS = proxy.TargetTLS{CA: "/etc/belfry/ca.pem", ServerName: "backend.internal"}
		want.Health.Path = "/healthz"
		want.Breaker.Consecutive, want.Breaker.Ratio = 5, 0.5
		want.Subset = proxy.Subset{Size: 20, Identity: "proxy-a"}
		want.Outlier.Gap, want.Outlier.Latency = 0.1, 3
		want.Rate = proxy.Rate{PerSecond: 5000, Burst: 500}
		want.AttemptTimeout = 5 * time.Second
		want.Hedge.Percentile = 0.95
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
	lines := strings.Split(string(data), "\n")
	t.Run("without a line that says default it is the same", func(t *testing.T) {
		n := 0
		for i, line := range lines {
			if !strings.Contains(line, "# default") {
				continue
			}
			n++
			less, err := Parse("less", []byte(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n")))
			if err != nil || !reflect.DeepEqual(less, got) {
				t.Errorf("line %d is not the default: %s (%v)", i+1, line, err)
			}
		}
		if n < 20 {
			t.Errorf("only %d lines say default", n)
		}
	})
	t.Run("has every key", func(t *testing.T) {
		var all func(prefix string, known map[string]field)
		all = func(indent string, known map[string]field) {
			for name, f := range known {
				if !strings.Contains(string(data), "\n"+indent+name+":") && !strings.Contains(string(data), "\n#"+indent+name+":") {
					t.Errorf("%s is missing", name)
				}
				all(indent+"  ", f.fields)
			}
		}
		all("", fields())
	})
	t.Run("says of every value what is accepted", func(t *testing.T) {
		for _, accepted := range []string{
			proxy.AcceptedBufferWait, proxy.AcceptedTimeout, proxy.AcceptedPlaces, proxy.AcceptedAttempts, proxy.AcceptedRetryRatio,
			proxy.AcceptedReplay, proxy.AcceptedDrain, proxy.AcceptedInterval, proxy.AcceptedLoad, proxy.AcceptedInARow,
			proxy.AcceptedClientTimes, proxy.AcceptedHeaderBytes,
		} {
			if accepted == proxy.AcceptedLoad {
				accepted = "in_flight or random"
			}
			if !strings.Contains(string(data), accepted) {
				t.Errorf("%q is missing", accepted)
			}
		}
	})
}

// uncommented returns the example with what it cannot have in use, for the files that it names are nowhere: keys after a #.
func uncommented(data []byte) []byte {
	return regexp.MustCompile(`(?m)^#( *(tls|cert|key|ca):)`).ReplaceAll(data, []byte("$1"))
}

func TestNumbersOutOfAllRange(t *testing.T) {
	n := 0
	var each func(prefix, indent string, known map[string]field)
	each = func(prefix, indent string, known map[string]field) {
		for name, f := range known {
			each(prefix+indent+name+":\n", indent+"  ", f.fields)
			if !regexp.MustCompile(`^[0-9].* to `).MatchString(f.accepted) {
				continue
			}
			n++
			for _, value := range []string{
				"-1", "-0.5", "-1s", "-1KiB", "99999999999999999999999999", "1e400", "-1e400", "9999999h", "9223372036854775807ns",
				"9223372036854775807", "18446744073709551615", "1EiB", ".nan", ".inf", "-.inf", "0x1p-2", "''", "~",
			} {
				text := "targets: [http://a]\n" + prefix + indent + name + ": " + value + "\n"
				line := strings.Count(text, "\n")
				_, err := Parse("f", []byte(text))
				if err == nil || !regexp.MustCompile(fmt.Sprintf(`(?m)^f:%d: \S*%s must be %s, got `, line, name, regexp.QuoteMeta(f.accepted))).MatchString(err.Error()) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
	each("", "", fields())
	if n < 15 {
		t.Errorf("only %d numbers", n)
	}
}

func TestFilesThatAreNamedAreRead(t *testing.T) {
	dir := t.TempDir()
	path, empty, none := filepath.Join(dir, "belfry.yaml"), filepath.Join(dir, "empty.pem"), filepath.Join(dir, "none.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"targets: [http://a]\ntls:\n  cert: " + none + "\n  key: " + none + "\n":   ":2: tls must be a certificate and its key in PEM",
		"targets: [http://a]\ntls:\n  cert: " + empty + "\n  key: " + empty + "\n": ":2: tls must be a certificate and its key in PEM",
		"targets: [http://a]\ntarget_tls:\n  ca: " + none + "\n":                   ":3: target_tls.ca must be the path of a file in PEM: open " + none,
		"targets: [http://a]\ntarget_tls:\n  ca: " + empty + "\n":                  ":3: target_tls.ca must be the path of a file in PEM, and there is no certificate in",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAFileWithTargetsOnlyIsTheDefaults(t *testing.T) {
	for name, text := range map[string]string{
		"a list":          "targets:\n  - http://a\n",
		"flow":            "targets: [http://a]",
		"json":            `{"targets": ["http://a"]}`,
		"with a mark":     "\ufefftargets: [http://a]",
		"other lines":     "# hello\r\ntargets:\r\n  - http://a\r\n",
		"a document":      "---\ntargets: [http://a]\n...\n",
		"empty mapping":   "targets: [http://a]\nbuffer: {}\n",
		"quoted":          "\"targets\": ['http://a']",
		"everything once": "targets: [http://a]\nlimit: 1024\n",
	} {
		t.Run(name, func(t *testing.T) {
			want := proxy.Defaults()
			want.Targets = []string{"http://a"}
			if got, err := Parse("f", []byte(text)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestValuesAreReadAsTheyAreWritten(t *testing.T) {
	got, err := Parse("f", []byte(`
listen: ":80"
admin: OFF
targets: ["h2c://a:81", file:///etc/targets, srv:///_http._tcp.a.example]
load: in_flight
shed: false
buffer: {size: 7, wait: 1m30s}
retry: {attempts: 1, budget: 1, body_cap: 1MiB}
client: {header_bytes: 8192}
drain: {delay: 0, timeout: 0}
trusted_forwarders: [127.0.0.1, "::1", "::ffff:10.1.2.3/120", 10.1.2.3/8]
access_log: true
log_level: debug
`))
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.Defaults()
	want.Listen, want.Admin, want.Load, want.Shed = ":80", "", "in_flight", false
	want.Targets = []string{"h2c://a:81", "file:///etc/targets", "srv:///_http._tcp.a.example"}
	want.Buffer, want.BufferWait, want.Attempts, want.RetryRatio, want.ReplayBytes = 7, 90*time.Second, 1, 1, 1<<20
	want.Client.HeaderBytes, want.Drain, want.AccessLog = 8192, 0, true
	want.LogLevel = "debug"
	for _, p := range []string{"127.0.0.1/32", "::1/128", "10.1.2.0/24", "10.0.0.0/8"} {
		want.TrustedForwarders = append(want.TrustedForwarders, netip.MustParsePrefix(p))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestMistakesHaveTheirLine(t *testing.T) {
	const ok = "targets: [http://a]\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "f: targets must be http://host[:port], https://"},
		{"a comment", "# nothing\n", "f: targets must be "},
		{"no targets", "limit: 1\n", "f: targets must be "},
		{"empty targets", "limit: 1\ntargets: []\n", "f:2: targets must be "},
		{"a list", "- a\n", "f:1: must be a mapping of keys to values, got a list"},
		{"a word", "hello\n", `f:1: must be a mapping of keys to values, got "hello"`},
		{"two documents", ok + "---\nlimit: 1\n", "f:3: must be one document"},
		{"not YAML", ok + "limit: [1\n", "f:2: is not YAML: "},
		{"a tab", ok + "buffer:\n\tsize: 1\n", "f:3: is not YAML: "},
		{"not UTF-8", ok + "load: \xff\n", "f: must be UTF-8"},
		{"unknown", ok + "limits: 3\n", "f:2: limits is not known; is it limit that is meant?"},
		{"unknown, of no likeness", ok + "frobnicate: 3\n", "f:2: frobnicate is not known; accepted: access_log, admin, breaker, buffer,"},
		{"unknown further in", ok + "buffer:\n  size: 1\n  sizes: 2\n", "f:4: buffer.sizes is not known; is it buffer.size that is meant?"},
		{"twice", ok + "limit: 1\ntimeout: 1s\nlimit: 1\n", "f:4: limit is there twice, first in line 2"},
		{"twice further in", ok + "buffer:\n  size: 1\n  size: 1\n", "f:4: buffer.size is there twice, first in line 3"},
		{"limit 0", ok + "limit: 0\n", "f:2: limit must be 1 to 1000000, got 0"},
		{"limit below 0", ok + "limit: -1\n", "f:2: limit must be 1 to 1000000, got -1"},
		{"absurd", ok + "limit: 99999999999999999999999999\n", "f:2: limit must be 1 to 1000000, got \"99999999999999999999999999\""},
		{"endpoint_limit 0", ok + "endpoint_limit: 0\n", "f:2: endpoint_limit must be 1 to 1000000, got 0"},
		{"endpoint_limit a word", ok + "endpoint_limit: adaptiv\n", `f:2: endpoint_limit must be adaptive, or 1 to 1000000, got`},
		{"subset without size", ok + "subset:\n  identity: a\n", "f:2: subset must have a size of 1 to 1000000"},
		{"subset of nobody", ok + "subset:\n  size: 3\n", "f:2: subset must have an identity, or index and count"},
		{"subset with both", ok + "subset:\n  size: 3\n  count: 4\n  identity: a\n", `f:5: subset.identity must not be there with a count, got "a"`},
		{"subset index", ok + "subset:\n  size: 3\n  index: 4\n  count: 4\n", "f:4: subset.index must be a number from 0 on that is below count, got 4"},
		{"subset index alone", ok + "subset:\n  size: 3\n  index: 4\n", "f:4: subset.index must not be there without a count, got 4"},
		{"subset size", ok + "subset:\n  size: 1000001\n  identity: a\n", "f:3: subset.size must be 1 to 1000000, got 1000001"},
		{"buffer.size 0", ok + "buffer:\n  size: 0\n", "f:3: buffer.size must be 1 to 1000000, got 0"},
		{"a fraction", ok + "limit: 1.5\n", "f:2: limit must be 1 to 1000000, got 1.5"},
		{"a word for a number", ok + "limit: many\n", `f:2: limit must be 1 to 1000000, got "many"`},
		{"nothing for a number", ok + "limit:\n", "f:2: limit must be 1 to 1000000, got nothing"},
		{"a mapping for a number", ok + "limit: {a: 1}\n", "f:2: limit must be 1 to 1000000, got a mapping"},
		{"a number for a mapping", ok + "buffer: 512\n", "f:2: buffer must be a mapping of size, wait, got 512"},
		{"a time without unit", ok + "timeout: 30\n", "f:2: timeout must be 1ms to 1h, got 30; a number needs a unit"},
		{"a time below 0", ok + "timeout: -1s\n", "f:2: timeout must be 1ms to 1h, got -1s"},
		{"a time of 0", ok + "timeout: 0\n", "f:2: timeout must be 1ms to 1h, got 0s"},
		{"yes", ok + "shed: yes\n", `f:2: shed must be true or false, got "yes"`},
		{"not a number", ok + "retry: {budget: .nan}\n", "f:2: retry.budget must be 0 to 1, got .nan"},
		{"infinity", ok + "retry: {budget: .inf}\n", "f:2: retry.budget must be 0 to 1, got .inf"},
		{"bytes", ok + "retry: {body_cap: 17MiB}\n", "f:2: retry.body_cap must be 0 to 16MiB, got 17825792"},
		{"rate", ok + "rate: {per_second: -1}\n", "f:2: rate.per_second must be 0 to 1000000, got -1"},
		{"burst", ok + "rate:\n  per_second: 1\n  burst: 2000000\n", "f:4: rate.burst must be 0 to 1000000, got 2000000"},
		{"burst of nothing", ok + "rate: {burst: 3}\n", "f:2: rate.burst must not be there without per_second, got 3"},
		{"probe path", ok + "probe_path: load\n", `f:2: probe_path must be a path that begins with /, without a query, got "load"`},
		{"load", ok + "load: best\n", `f:2: load must be expected, reported, probing, peak_ewma, in_flight or random, got "best"`},
		{"log level", ok + "log_level: loud\n", `f:2: log_level must be debug, info, warn or error, got "loud"`},
		{"path", ok + "health:\n  path: healthz\n", `f:3: health.path must be a path that begins with /`},
		{"failures in a row", ok + "breaker: {consecutive: -1}\n", "f:2: breaker.consecutive must be 0 to 1000, got -1"},
		{"share of failures", ok + "breaker:\n  ratio: 1.5\n", "f:3: breaker.ratio must be 0 to 1, got 1.5"},
		{"no share of failures", ok + "breaker: {ratio: .nan}\n", "f:2: breaker.ratio must be 0 to 1, got .nan"},
		{"half as slow", ok + "outlier: {latency: 0.5}\n", "f:2: outlier.latency must be 1 to 100, or 0 for no comparison, got 0.5"},
		{"times", ok + "outlier:\n  min_pause: 2m\n  max_pause: 1m\n", "f:4: outlier.max_pause must not be below min_pause, 2m0s, got 1m0s"},
		{"nobody may be out", ok + "eject: {max_share: 0}\n", "f:2: eject.max_share must be 0.001 to 1, got 0"},
		{"window", ok + "breaker: {window: 1ms}\n", "f:2: breaker.window must be 100ms to 1h, got 1ms"},
		{"too few calls", ok + "breaker: {min_calls: 0}\n", "f:2: breaker.min_calls must be 1 to 1000000, got 0"},
		{"no pause", ok + "breaker: {min_pause: 0s}\n", "f:2: breaker.min_pause must be 1ms to 1h, got 0s"},
		{"pauses", ok + "breaker:\n  min_pause: 2m\n  max_pause: 1m\n", "f:4: breaker.max_pause must not be below min_pause, 2m0s, got 1m0s"},
		{"hedge delay", ok + "hedge:\n  delay: 0s\n", "f:3: hedge.delay must be 1ms to 1h, got \"0s\""},
		{"hedge delay, long", ok + "hedge: {delay: 2h}\n", "f:2: hedge.delay must be 1ms to 1h, got 2h0m0s"},
		{"hedge percentile", ok + "hedge:\n  max: 1\n  percentile: 95\n", "f:4: hedge.percentile must be 0.01 to 0.999, got 95"},
		{"hedge percentile 0", ok + "hedge: {percentile: 0}\n", "f:2: hedge.percentile must be 0.01 to 0.999, got 0"},
		{"hedge with both", ok + "hedge:\n  delay: 1s\n  percentile: 0.9\n", "f:4: hedge.percentile must not be there with a delay, got 0.9 and 1s"},
		{"hedge max", ok + "hedge: {max: 0}\n", "f:2: hedge.max must be 1 to 10, got 0"},
		{"forwarder", ok + "trusted_forwarders:\n  - 10.0.0.1\n  - 10.0.0.0/33\n", `f:4: trusted_forwarders[1] must be addresses or networks`},
		{"half of tls", ok + "tls: {cert: a}\n", "f:2: tls must have both cert and key, or neither"},
		{"same address", ok + "listen: 127.0.0.1:1\nadmin: 127.0.0.1:1\n", "f:3: admin must not be the address to listen on"},
		{"a target for a list", "targets: http://a\n", `f:1: targets must be a list of http://host[:port], `},
		{"a bad target", "targets:\n  - http://a\n  - ftp://b\n", `f:3: targets must be http://host[:port], `},
		{"the same target", "targets:\n  - http://a\n\n  - http://A:80/\n", `"http://a" and "http://A:80/" are the same`},
		{"itself", "listen: 127.0.0.1:80\ntargets:\n  - http://a\n  - http://127.0.0.1\n", `f:4: targets must name other servers`},
		{"an anchor", "targets: &a [http://a]\n", "anchors, aliases and tags are not supported"},
		{"an alias", ok + "limit: *a\n", ""},
		{"a tag", ok + "limit: !!int 3\n", "f:2: limit must be 1 to 1000000, got !!int 3; anchors, aliases and tags are not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAnEndpointLimitMayFindItself(t *testing.T) {
	for text, want := range map[string]bool{"adaptive": true, "Adaptive": true, "256": false} {
		cfg, err := Parse("f", []byte("targets: [http://a]\nendpoint_limit: "+text+"\n"))
		if err != nil || cfg.AdaptiveEndpoints != want || cfg.EndpointLimit != 256 {
			t.Errorf("%s: adaptive %v, %d, %v", text, cfg.AdaptiveEndpoints, cfg.EndpointLimit, err)
		}
	}
}

func TestAllMistakesAreSaidOnceInOrder(t *testing.T) {
	_, err := Parse("f", []byte("timeout: 0\nbuffer: 3\nlimit: many\nx: y\ntrusted_forwarders: [nobody]\ntargets: [http://a, '']\n"))
	if err == nil {
		t.Fatal("no error")
	}
	var at []string
	for line := range strings.Lines(err.Error()) {
		place, _, _ := strings.Cut(line, " ")
		at = append(at, place)
	}
	if want := []string{"f:1:", "f:2:", "f:3:", "f:4:", "f:5:", "f:6:"}; !slices.Equal(at, want) {
		t.Errorf("got\n%v", err)
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "none: no such file",
		dir:                        "must be a file",
		long:                       "must be no longer than 1 MiB",
	} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The parser takes minutes for such files, or ends the program.
func TestAFileThatIsNestedTooDeepIsRefusedAtOnce(t *testing.T) {
	const most = 1 << 20
	for _, part := range []string{"[", "{", "{a: ", "[a,", "- ", "? ", "!x ", "&a ", "- ? ", ": "} {
		text := "limit: 5\ntargets: " + strings.Repeat(part, most/len(part))
		if strings.Trim(part, "-?!x&a: ") == "" {
			text = "limit: 5\n" + strings.Repeat(part, most/len(part))
		}
		_, err := Parse("f", []byte(text))
		if err == nil || err.Error() != "f:2: must not be nested deeper than 50" {
			t.Errorf("%q: %.200v", part, err)
		}
	}
	deepest := "targets: [http://a]\n# " + strings.Repeat("[", 49) + "\n"
	if _, err := Parse("f", []byte(deepest)); err != nil {
		t.Errorf("49 brackets in a comment: %v", err)
	}
}

func TestReadingThatTakesForeverIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rest := make(chan struct{})
		defer close(rest)
		began := time.Now()
		_, err := inTime("f", patience, func() (proxy.Config, error) {
			<-rest
			return proxy.Config{}, nil
		})
		if want := "f: must be readable within 10s, and is not"; err == nil || err.Error() != want || time.Since(began) != patience {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// FuzzParse looks for a file that ends the program, or that is taken though its values are not.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, seed := range []string{"", "targets: [http://a]", "a: &a\n  b: *a\n", "? x\n: y", "targets: [http://a]\n<<: {limit: 0}\n", "--- |\n x\n", "\t", "{", "targets: !!x [a]"} {
		f.Add([]byte(seed))
	}
	f.Add([]byte("\r0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 { // the parser takes time by the square of the length
			return
		}
		cfg, err := Parse("f", data)
		if err != nil {
			last := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1 // each ends a line in YAML
			for line := range strings.Lines(err.Error()) {
				m := mistake.FindStringSubmatch(line)
				if m == nil {
					t.Fatalf("%q does not say what is wrong with what", line)
				}
				if n, _ := strconv.Atoi(m[1]); m[1] != "" && (n < 1 || n > last) {
					t.Errorf("%q is about line %d of %d", line, n, last)
				}
			}
			return
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("taken, though %v", err)
		}
		// What means nothing changes nothing.
		if again, err := Parse("f", append([]byte("# first\n\n"), data...)); !bytes.HasPrefix(data, []byte("\ufeff")) && (err != nil || !reflect.DeepEqual(again, cfg)) {
			t.Errorf("after a comment: %+v, %v", again, err)
		}
	})
}

// mistake is what a line of an error looks like: the file, the line unless it is about what is not there, and what is the matter with
// a key or with the whole.
var mistake = regexp.MustCompile(`^f(?::([0-9]+))?: (?:.+ )?(?:must|is not|is there twice|cannot be read)`)

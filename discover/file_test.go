package discover

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// write replaces the file at path as File asks for.
func write(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func followFile(t *testing.T, path string, cfg Config) *follower {
	t.Helper()
	source, err := File(t.Context(), path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, source)
	synctest.Wait()
	return f
}

func TestFile(t *testing.T) {
	path := func(t *testing.T) string {
		t.Helper()
		return filepath.Join(t.TempDir(), "targets")
	}
	bubble(t, "lines and comments", func(t *testing.T) {
		path := path(t)
		write(t, path, "# ours\nhttp://a:8080\n\n  HTTPS://B/api/ # theirs\r\n10.0.0.1:80")
		f := followFile(t, path, Config{Scheme: "http"})
		f.want("+http://10.0.0.1:80", "+http://a:8080", "+https://b:443/api")
	})
	bubble(t, "a JSON list", func(t *testing.T) {
		path := path(t)
		write(t, path, "\ufeff\n [\n\"http://a:8080\", \"b:80\"\n]\n")
		f := followFile(t, path, Config{})
		f.want("+b:80", "+http://a:8080")
	})
	bubble(t, "a file that is replaced", func(t *testing.T) {
		path := path(t)
		write(t, path, "a:1\nb:1")
		f := followFile(t, path, Config{})
		f.want("+a:1", "+b:1")
		write(t, path, "b:1\nc:1")
		after(defaultFileInterval)
		f.want("+c:1", "-a:1")
	})
	bubble(t, "a file of the same length and time", func(t *testing.T) {
		path := path(t)
		write(t, path, "a:1")
		f := followFile(t, path, Config{})
		f.want("+a:1")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("b:1"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
		after(defaultFileInterval)
		f.want("+b:1", "-a:1")
	})
	bubble(t, "a link that is moved, as in a mounted config map", func(t *testing.T) {
		dir := t.TempDir()
		mount := func(version, text string) {
			t.Helper()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.Mkdir(filepath.Join(dir, version), 0o700))
			must(os.WriteFile(filepath.Join(dir, version, "targets"), []byte(text), 0o600))
			must(os.Symlink(version, filepath.Join(dir, "..data.next")))
			must(os.Rename(filepath.Join(dir, "..data.next"), filepath.Join(dir, "..data")))
		}
		mount("..2026_01", "a:1\nb:1")
		path := filepath.Join(dir, "targets")
		if err := os.Symlink(filepath.Join("..data", "targets"), path); err != nil {
			t.Fatal(err)
		}
		f := followFile(t, path, Config{})
		f.want("+a:1", "+b:1")
		mount("..2026_02", "b:1\nc:1")
		if err := os.RemoveAll(filepath.Join(dir, "..2026_01")); err != nil {
			t.Fatal(err)
		}
		after(defaultFileInterval)
		f.want("+c:1", "-a:1")
	})
	bubble(t, "a file with a mistake changes nothing", func(t *testing.T) {
		path := path(t)
		write(t, path, "a:1\nb:1")
		f := followFile(t, path, Config{})
		f.want("+a:1", "+b:1")
		write(t, path, "b:1\nc:1\nd")
		after(defaultFileInterval)
		f.want("error")
		f.wantErr("discover: " + path + `: line 3: "d": must be host:port: missing port in address`)
		write(t, path, "b:1\nc:1\nd:1")
		after(defaultFileInterval)
		f.want("+c:1", "+d:1", "-a:1")
	})
	bubble(t, "a file that is gone, and comes back", func(t *testing.T) {
		path := path(t)
		f := followFile(t, path, Config{})
		f.want("error")
		f.wantErr("discover: " + path + ": no such file or directory")
		write(t, path, "a:1")
		after(defaultFileInterval)
		f.want("+a:1")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		after(defaultFileInterval)
		f.want("error")
		write(t, path, "b:1")
		after(defaultFileInterval)
		f.want("+b:1", "-a:1")
	})
	bubble(t, "an empty file changes nothing, unless the set may be empty", func(t *testing.T) {
		for _, empty := range []string{"", "\n", "# nobody\n", "[]", " [ ] "} {
			kept, taken := path(t), path(t)
			write(t, kept, "a:1")
			write(t, taken, "a:1")
			keeps := followFile(t, kept, Config{})
			takes := followFile(t, taken, Config{AllowEmpty: true})
			write(t, kept, empty)
			write(t, taken, empty)
			after(defaultFileInterval)
			keeps.want("+a:1", "error")
			keeps.wantErr("discover: " + kept + ": no endpoints")
			takes.want("+a:1", "-a:1")
		}
	})
	bubble(t, "what is no file, or too long", func(t *testing.T) {
		dir := t.TempDir()
		f := followFile(t, dir, Config{})
		f.wantErr("is not a regular file")
		path := path(t)
		write(t, path, "a:1")
		if err := os.Truncate(path, maxFile+1); err != nil {
			t.Fatal(err)
		}
		f = followFile(t, path, Config{})
		f.wantErr("is longer than 16 MiB")
	})
	bubble(t, "it is read once an interval", func(t *testing.T) {
		path := path(t)
		write(t, path, "a:1")
		f := followFile(t, path, Config{Interval: time.Hour, Rand: chance(0)})
		write(t, path, "b:1")
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		f.want("+a:1")
		after(0)
		f.want("+b:1", "-a:1")
	})
	t.Run("what is refused", func(t *testing.T) {
		if _, err := File(t.Context(), "", Config{}); err == nil {
			t.Error("no path was accepted")
		}
		if _, err := File(t.Context(), "a", Config{Scheme: "no scheme"}); err == nil {
			t.Error("a Config that is not valid was accepted")
		}
	})
}

func TestParseList(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // the addresses, or the error after "line "
	}{
		{"[::1]:8080\n[fd00::1]:80", "[::1]:8080 [fd00::1]:80"},
		{"[ABCD::1]:80", "[abcd::1]:80"},
		{`["[::1]:8080"]`, "[::1]:8080"},
		{"a:1#b:1\n#c:1", "a:1"},
		{"unix:///run/a.sock", "unix:///run/a.sock"},
		{"http://a/b%2Fc%2f/", "http://a:80/b%2Fc%2f"},
		{"http://A/x/\nhttp://a:080/x", "http://a:80/x http://a:80/x"},
		{"a:1\n\nb c:1\n", `line 3: "b c:1": address must not contain spaces`},
		{"a:1 weight=3\tzone=eu-1\nhttp://B host=r priority=1 # c", "a:1 weight=3 zone=eu-1 http://b:80 priority=1 host=r"},
		{`["a:1 zone=b", "b:1  weight=2 "]`, "a:1 zone=b b:1 weight=2"},
		{"a:1 priority=0 weight=1", "a:1 weight=1"},
		{"a:1 weight=0", `line 1: "a:1 weight=0": weight must be 1 to 1000000, got "0"`},
		{"a:1 weight=1000001", `line 1: "a:1 weight=1000001": weight must be`},
		{"a:1 weight=x", `line 1: "a:1 weight=x": weight must be`},
		{"a:1 priority=-1", `line 1: "a:1 priority=-1": priority must be 0 to 100, got "-1"`},
		{"a:1 priority=101", `line 1: "a:1 priority=101": priority must be`},
		{"a:1 zone=", `line 1: "a:1 zone=": zone must not be empty`},
		{"a:1 zone=\x00", "line 1: \"a:1 zone=\\x00\": address must not contain"},
		{"a:1 zone=b zone=b", `line 1: "a:1 zone=b zone=b": zone is there twice`},
		{"a:1 color=red", `line 1: "a:1 color=red": "color" is not known, accepted are weight=1 to`},
		{"weight=1", `line 1: "weight=1": must be host:port`},
		{"a:1 b:1", `line 1: "a:1 b:1": address must not contain spaces`},
		{"http://u:p@a", `line 1: "http://u:p@a": a user does not belong`},
		{"http://a?b", `line 1: "http://a?b": a query`},
		{"http://:80", `line 1: "http://:80": host must not be empty`},
		{"http://a:", `line 1: "http://a:": port must be 1 to 65535`},
		{"http://a:70000", `line 1: "http://a:70000": port must be 1 to 65535`},
		{"http://[::1", `line 1: "http://[::1": missing ']' in host`},
		{"a\x00:1", `line 1: "a\x00:1": address must not contain`},
		{"[1, 2]", `line 1: "[1, 2]": address must not contain`},
		{"[", "line 1: the list has no end"},
		{"[\n\"a:1\",\n", "line 3: the list has no end"},
		{"[\n\"a:1\"\n\"b:1\"]", "line 3: invalid character '\"' after array element"},
		{"[\n\"a:1\",\n\n {\"b\": 1}]", "line 4: must be a list of strings, got { in it"},
		{"[\n\"a:1\", null]", "line 2: must be a list of strings, got <nil> in it"},
		{"[\n\n\"a\"]", `line 3: "a": must be host:port`},
		{"[\"\xff:1\"]", "line 1: \"\ufffd:1\": address must not contain"},
		{"[\"a:1\"]\n\n[]", "line 3: there is something after the list"},
		{"[\"a:1\"]\nb:1", "line 2: there is something after the list"},
		{"{\"a\": 1}", `line 1: "{\"a\": 1}": address must not contain`},
	} {
		addrs, err := parseList([]byte(c.text), "")
		if !strings.HasPrefix(c.want, "line ") {
			if got := strings.Join(lines(addrs), " "); err != nil || got != c.want {
				t.Errorf("%q: got %q and %v, want %q", c.text, got, err, c.want)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || addrs != nil {
			t.Errorf("%q: got %v and %v, want an error that begins %q", c.text, addrs, err, c.want)
		}
	}
}

// lines writes endpoints as a file has them.
func lines(found []Change) (all []string) {
	for _, c := range found {
		line := c.Addr
		if c.Weight != 0 {
			line += " weight=" + strconv.Itoa(c.Weight)
		}
		if c.Zone != "" {
			line += " zone=" + c.Zone
		}
		if c.Priority != 0 {
			line += " priority=" + strconv.Itoa(c.Priority)
		}
		if c.Host != "" {
			line += " host=" + c.Host
		}
		all = append(all, line)
	}
	return all
}

// FuzzParseList reads lists in both forms: whatever they are, the result is a list that reads the same again, in both forms, or an
// error with a line that is there.
func FuzzParseList(f *testing.F) {
	for _, seed := range []string{
		"http://a:8080\nb:80 # c\n", `["http://a/b/", "[::1]:80"]`, "[::1]:80", "", "[", "\ufeff[]", "unix:///a", "[\"\\ud800:1\"]", "a:1\r\nb",
		"a:1 weight=2 zone=b", "[\"a:1 priority=1 host=c\"]", "a:1 weight=0", "unix:///a=b zone=c", "unix:///a b=c/d",
		"http://[fe80::1%25eth0]:80", "[fe80::1%eth0]:80", "HTTP://%41/%2f/", "a.:00080", "http://a/b%2F/",
	} {
		f.Add([]byte(seed), "http")
		f.Add([]byte(seed), "")
	}
	f.Fuzz(func(t *testing.T, data []byte, scheme string) {
		if (Config{Scheme: scheme}).Validate() != nil {
			return
		}
		addrs, err := parseList(data, scheme)
		if err != nil {
			line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "line "), ":")
			if n, e := strconv.Atoi(line); e != nil || n < 1 || n > 1+strings.Count(string(data), "\n") || addrs != nil {
				t.Fatalf("%q: got %v and %v", data, addrs, err)
			}
			return
		}
		again := func(form string, text []byte) {
			t.Helper()
			if got, err := parseList(text, scheme); err != nil || !slices.Equal(got, addrs) {
				t.Fatalf("%q: got %v, and as %s %v and %v", data, addrs, form, got, err)
			}
		}
		text, err := json.Marshal(lines(addrs))
		if err != nil {
			t.Fatal(err)
		}
		if addrs != nil {
			again("JSON", text)
		}
		if text := strings.Join(lines(addrs), "\n"); !strings.Contains(text, "#") { // as in JSON an address may
			again("lines", []byte(text))
		}
	})
}

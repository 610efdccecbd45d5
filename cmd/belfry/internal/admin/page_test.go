package admin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shown is what the page must show: of the whole, and of each item of the lists that have a template.
var shown = map[string][]string{
	"": {
		"status", "address", "uptime_seconds", "config.generation", "window_seconds", "version",
		"requests.rate", "requests.total", "requests.p50_ms", "requests.p99_ms", "requests.in_flight",
		"limit.in_flight", "limit.limit", "buffer.queued", "buffer.seated", "buffer.bound",
		"requests.rejected_rate", "requests.outcomes.rejected", "requests.failed_rate", "requests.failed", "retry.rate", "retry.budget",
	},
	"endpoints": {"condition", "key", "share", "in_flight", "limit", "cost", "latency_ms", "rate", "failed_rate", "failures"},
	"stack":     {"name", "settings"},
	"reasons":   {"count", "reason"},
}

// templates are the lists by the template of their items.
var templates = map[string]string{"row": "endpoints", "layer": "stack", "reason": "reasons"}

// A binding is an element that shows a number of /api/state.
type binding struct{ list, field, unit string }

var (
	bound    = regexp.MustCompile(`data-f="([^"]+)" data-u="([^"]+)"`)
	template = regexp.MustCompile(`(?s)<template id="(\w+)">(.*?)</template>`)
)

// bindings returns what the page's markup binds.
func bindings(t *testing.T) (all []binding) {
	t.Helper()
	markup, _, _ := strings.Cut(string(page), "<script>")
	for _, part := range template.FindAllStringSubmatch(markup, -1) {
		list, ok := templates[part[1]]
		if !ok {
			t.Errorf("a template is called %s", part[1])
		}
		for _, b := range bound.FindAllStringSubmatch(part[2], -1) {
			all = append(all, binding{list, b[1], b[2]})
		}
	}
	for _, b := range bound.FindAllStringSubmatch(template.ReplaceAllString(markup, ""), -1) {
		all = append(all, binding{"", b[1], b[2]})
	}
	return all
}

// TestThePageBindsEachNumber needs no browser: what is shown has the names that /api/state has, and all of it is there.
func TestThePageBindsEachNumber(t *testing.T) {
	from := time.Now().Add(-time.Hour)
	p := busy(from)
	a := New(p)
	traffic(a, p, from)
	var said any
	if err := json.Unmarshal(ask(a, http.MethodGet, "/api/state").Body.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, b := range bindings(t) {
		got[b.list] = append(got[b.list], b.field)
		path := b.field
		if b.list != "" {
			path = b.list + ".0." + b.field
		}
		// The first layer has no settings, which the JSON then does not name.
		if _, ok := at(said, path); !ok && path != "stack.0.settings" {
			t.Errorf("the page shows %s, which /api/state does not have", path)
		}
		if !strings.Contains(string(page), "\n  "+b.unit+": ") {
			t.Errorf("%s is written as %s, which the script does not know", path, b.unit)
		}
	}
	for list, want := range shown {
		for _, field := range want {
			if n := count(got[list], field); n != 1 {
				t.Errorf("%s %s is there %d times", list, field, n)
			}
		}
		if len(got[list]) != len(want) {
			t.Errorf("%s shows %v, want %v", list, got[list], want)
		}
	}
}

// at returns what is at a path in JSON, as the page's script finds it.
func at(v any, path string) (any, bool) {
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = in[key]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func count(all []string, s string) (n int) {
	for _, other := range all {
		if other == s {
			n++
		}
	}
	return n
}

func TestThePageIsOneFileThatAsksNobody(t *testing.T) {
	w := ask(New(busy(time.Now())), http.MethodGet, "/")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
	text := string(page)
	own := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
	for _, bad := range []string{"http://", "https://", "src=", "@import", "url(", "<link rel=\"stylesheet", " style=\"", " onclick=", " onload=", "eval(", "fetch(\"http"} {
		if strings.Contains(own, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, ref := range regexp.MustCompile(`(?:href=")([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(ref[1], "#") && !strings.HasPrefix(ref[1], "/") && !strings.HasPrefix(ref[1], "data:") {
			t.Errorf("the page refers to %s", ref[1])
		}
	}
	if n := strings.Count(text, string(seed)); n != 1 {
		t.Errorf("there are %d places for the first numbers", n)
	}
}

func TestThePolicyAllowsThisPageAndNothingElse(t *testing.T) {
	w := ask(New(busy(time.Now())), http.MethodGet, "/")
	directives := map[string]string{}
	for directive := range strings.SplitSeq(w.Header().Get("Content-Security-Policy"), "; ") {
		name, value, _ := strings.Cut(directive, " ")
		directives[name] = value
	}
	body := w.Body.String()
	for name, want := range map[string]string{
		"default-src": "'none'", "connect-src": "'self'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
		"style-src": sourceOf(t, body, "style"), "script-src": sourceOf(t, body, "script"),
	} {
		if directives[name] != want {
			t.Errorf("%s is %s, want %s", name, directives[name], want)
		}
	}
	if len(directives) != 8 {
		t.Errorf("the policy is %v", directives)
	}
}

// sourceOf finds the one element of a name without attributes, and says what allows it.
func sourceOf(t *testing.T, body, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<`+name+`>(.*?)</`+name+`>`).FindAllStringSubmatch(body, -1)
	if len(found) != 1 {
		t.Fatalf("%d elements %s", len(found), name)
	}
	sum := sha256.Sum256([]byte(found[0][1]))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func TestEveryStateHasItsOwnIconAndATone(t *testing.T) {
	text := string(page)
	var names []string
	for _, s := range severity {
		names = append(names, string(s))
	}
	for _, c := range conditions {
		names = append(names, string(c))
	}
	special := map[string]string{"serving": "ready", "degraded": "failing", "down": "unhealthy", "no endpoint": "dialling"}
	icons := map[string]string{}
	for _, name := range names {
		if !regexp.MustCompile(`"` + name + `": "(good|warn|bad|away|none)"`).MatchString(text) {
			t.Errorf("%s has no tone", name)
		}
		icon := strings.ReplaceAll(name, " ", "-")
		if other, ok := special[name]; ok {
			icon = other
			if !strings.Contains(text, `"`+name+`": "`+other+`"`) {
				t.Errorf("%s is not drawn as %s", name, other)
			}
		}
		if !strings.Contains(text, `<symbol id="`+icon+`"`) {
			t.Errorf("%s has no icon", name)
		}
		if slices.Contains(names[len(severity):], name) { // two conditions must not look the same
			if other, taken := icons[icon]; taken && other != name {
				t.Errorf("%s looks as %s does", name, other)
			}
			icons[icon] = name
		}
	}
}

func TestTheScriptFindsItsElements(t *testing.T) {
	markup, script, _ := strings.Cut(string(page), "<script>")
	for _, id := range regexp.MustCompile(`\$\("([^"]+)"\)`).FindAllStringSubmatch(script, -1) {
		if n := strings.Count(markup, `id="`+id[1]+`"`); n != 1 {
			t.Errorf("%d elements are called %s", n, id[1])
		}
	}
}

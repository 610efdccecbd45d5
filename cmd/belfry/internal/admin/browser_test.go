package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// TestThePageShowsTheNumbersOfTheState looks at the page in a browser. In CI there is one, or the test fails. Elsewhere there may
// be none, and TestThePageBindsEachNumber must do.
func TestThePageShowsTheNumbersOfTheState(t *testing.T) {
	path, ok := findChromium()
	if !ok {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no Chromium, which .ci/run installs: apt-get install chromium")
		}
		t.Log("NO BROWSER: there is no Chromium here, so nobody looks at the page; only its markup is checked")
		TestThePageBindsEachNumber(t)
		return
	}
	from := time.Now().Add(-3*time.Hour - 12*time.Minute - 20*time.Second)
	p := busy(from)
	a := New(p)
	traffic(a, p, time.Now().Add(-12*tick))
	s := serve(t, a)
	c := startChromium(t, path)
	c.look(t, 1200, 900, false)
	c.must(t, nil, "Page.navigate", map[string]any{"url": s.URL + "/"})
	c.until(t, `document.readyState === "complete" && document.title.includes("belfry") && source.readyState === 1`)

	t.Run("at first", func(t *testing.T) { compare(t, c, a) })
	look(t, c, "busy")
	t.Run("as events come", func(t *testing.T) {
		p.answer(1000, 200, "", 90*time.Millisecond, 2)
		p.answer(3, 502, "no connection", time.Millisecond, -1)
		p.change(func(s *proxy.State) {
			s.Requests.InFlight = 1
			s.Endpoints[0].State = balance.Ready
			s.Endpoints[1].Health = &proxy.HealthState{LastError: errRefused}
			s.Endpoints[2].State, s.Endpoints[2].Cost, s.Endpoints[2].Latency = balance.Ready, 123.4, 12*time.Second
			s.Endpoints = append(s.Endpoints, s.Endpoints[0])
			s.Endpoints[3].Key, s.Endpoints[3].State = "http://10.0.0.9:8080", balance.Draining
			s.Stack = "buffer(64) → balance(random)"
			s.Config.Generation++
			s.Config.Refused = errRefused
		})
		a.tick(time.Now().Add(tick))
		c.until(t, `document.querySelectorAll("#rows tr").length === 4`)
		compare(t, c, a)
	})
	look(t, c, "changed")
	for _, scene := range scenes {
		t.Run(scene.name, func(t *testing.T) {
			p.change(scene.change)
			a.tick(time.Now().Add(2 * tick))
			c.until(t, fmt.Sprintf(`document.getElementById("status").textContent === %q`, scene.status))
			var text string
			c.eval(t, &text, `document.querySelector("main").innerText`)
			for _, say := range scene.say {
				if !strings.Contains(text, say) {
					t.Errorf("%q is missing in\n%s", say, text)
				}
			}
			compare(t, c, a)
			look(t, c, strings.ReplaceAll(scene.name, " ", "-"))
		})
	}
	c.quiet(t, s.URL)
	t.Run("no connection", func(t *testing.T) {
		a.Close()
		s.CloseClientConnections()
		s.Listener.Close()
		c.until(t, `document.body.classList.contains("stale")`)
		var status string
		c.eval(t, &status, `document.getElementById("status").textContent + " " + document.title`)
		if status != "No connection no connection – belfry" {
			t.Errorf("it says %q", status)
		}
		look(t, c, "no-connection")
	})
}

// scenes are what an operator must not misread.
var scenes = []struct {
	name, status string
	change       func(s *proxy.State)
	say          []string
}{
	{"all endpoints down", "Down", func(s *proxy.State) {
		s.Endpoints = s.Endpoints[:3]
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			e.State, e.Err, e.Health, e.InFlight = balance.BackingOff, errRefused, nil, 0
		}
	}, []string{"All endpoints are out of service: 3 backing off.", "3 backing off", errRefused.Error()}},
	{"no endpoint", "No endpoint", func(s *proxy.State) {
		s.Endpoints = nil
		s.Discovery = fmt.Errorf("lookup app.internal: no such host")
	}, []string{"No endpoint is known", "lookup app.internal: no such host"}},
	{"draining", "Draining", func(s *proxy.State) {
		total, reasons := s.Requests.Total, s.Requests.Reasons
		*s = busy(s.Started).state
		s.Draining = true
		s.Requests = proxy.RequestStats{Total: total, InFlight: 12, Reasons: reasons}
	}, []string{"The signal to end has come; 12 requests are in flight."}},
}

// A cell is an element of the page that shows a number.
type cell struct {
	List              string
	Index             int
	Field, Unit, Text string
}

// cells finds all of them, with the list and the item that they are in.
const cells = `[...document.querySelectorAll("[data-f]")].map(el => {
	const list = el.closest("#rows, #path, #reasons"), item = list && [...list.children].find(child => child.contains(el));
	return {
		list: list ? {rows: "endpoints", path: "stack", reasons: "reasons"}[list.id] : "",
		index: list ? [...list.children].indexOf(item) : 0,
		field: el.dataset.f, unit: el.dataset.u, text: el.textContent,
	};
})`

// compare finds each number of the page in what /api/state says, and each that must be shown on the page.
func compare(t *testing.T, c *chromium, a *Admin) {
	t.Helper()
	var said any
	if err := json.Unmarshal(ask(a, http.MethodGet, "/api/state").Body.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	var all []cell
	c.eval(t, &all, cells)
	got := map[string]int{}
	for _, cell := range all {
		path := cell.Field
		if cell.List != "" {
			path = fmt.Sprintf("%s.%d.%s", cell.List, cell.Index, cell.Field)
		}
		got[path]++
		v, _ := at(said, path)
		if !same(cell.Unit, cell.Text, v) {
			t.Errorf("%s is %v, and the page shows %q", path, v, cell.Text)
		}
	}
	want := 0
	for list, fields := range shown {
		items := []string{""}
		if list != "" {
			v, _ := at(said, list)
			items = nil
			for i := range v.([]any) {
				items = append(items, fmt.Sprintf("%s.%d.", list, i))
			}
		}
		for _, item := range items {
			for _, field := range fields {
				want++
				if got[item+field] != 1 {
					t.Errorf("%s is shown %d times", item+field, got[item+field])
				}
			}
		}
	}
	if len(all) != want {
		t.Errorf("%d numbers are shown, want %d", len(all), want)
	}
}

// scales are what units and suffixes multiply by.
var scales = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "%": 0.01, "µs": 1e-3, "ms": 1, "s": 1e3}

// same reports whether text is how v is written: the very word, or a number that was rounded to the digits that are shown.
func same(unit, text string, v any) bool {
	if v == nil {
		return text == "–" || unit == "text" && text == ""
	}
	if word, ok := v.(string); ok {
		return text == word || unit == "status" && strings.EqualFold(text, word)
	}
	n := v.(float64)
	if unit == "time" {
		return sameTime(text, n)
	}
	digits := strings.TrimRight(text, "kMG%µms ")
	scale, known := scales[strings.TrimSpace(text[len(digits):])]
	shown, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
	if err != nil || !known {
		return false
	}
	step := scale // of the last digit
	if _, after, ok := strings.Cut(digits, "."); ok {
		step *= math.Pow(0.1, float64(len(after)))
	}
	if unit == "whole" {
		return shown*scale <= n && n < shown*scale+step
	}
	return math.Abs(shown*scale-n) <= step*0.500001
}

// sameTime reports whether text is the time of so many seconds, to a minute.
func sameTime(text string, seconds float64) bool {
	words, sum := strings.Fields(text), 0.
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			return false
		}
		sum += n * map[string]float64{"d": 86400, "h": 3600, "min": 60, "s": 1}[words[i+1]]
	}
	return len(words)%2 == 0 && sum <= seconds && seconds < sum+60
}

// look takes pictures, wide and light, narrow and dark, and fails the test if one is empty, the page is wider than the window, or
// a text of a tile or an endpoint is longer than there is room for.
func look(t *testing.T, c *chromium, name string) {
	t.Helper()
	for _, view := range []struct {
		name  string
		width int
		dark  bool
	}{{"wide", 1200, false}, {"narrow", 600, true}, {"phone", 400, false}} {
		c.look(t, view.width, 900, view.dark)
		var wide int
		c.eval(t, &wide, `document.documentElement.scrollWidth`)
		if wide > view.width {
			t.Errorf("%s, %s: the page is %d pixels wide", name, view.name, wide)
		}
		var cut []string
		c.eval(t, &cut, `[...document.querySelectorAll(".tile, .tile *, .endpoints td")]
			.filter(e => getComputedStyle(e).display !== "inline" && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)`)
		if len(cut) > 0 {
			t.Errorf("%s, %s: there is no room for %q", name, view.name, cut)
		}
		shot := c.screenshot(t)
		if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+"-"+view.name+".png"), shot, 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		if img.Bounds().Dx() != view.width {
			t.Errorf("%s, %s: the picture is %d pixels wide", name, view.name, img.Bounds().Dx())
		}
		if n, dark := colours(img); n < 100 || dark != view.dark {
			t.Errorf("%s, %s: %d colours, mostly dark %v", name, view.name, n, dark)
		}
	}
	c.look(t, 1200, 900, false)
}

// colours counts the colours of a picture, and says whether most of it is dark.
func colours(img image.Image) (n int, dark bool) {
	seen, light := map[[3]uint8]bool{}, []uint8{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y += 5 {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x += 2 {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[[3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}] = true
			light = append(light, uint8(g>>8))
		}
	}
	slices.Sort(light)
	return len(seen), light[len(light)/2] < 128
}

func TestSameKnowsTheDifference(t *testing.T) {
	for _, c := range []struct {
		unit, text string
		v          any
		want       bool
	}{
		{"n", "1,234", 1234., true},
		{"n", "1,234", 1235., false},
		{"n", "1.2M", 1_234_567., true},
		{"n", "1.3M", 1_234_567., false},
		{"n", "", 0., false},
		{"n", "–", 0., false},
		{"n", "–", nil, true},
		{"n", "0", nil, false},
		{"text", "", nil, true},
		{"text", "a", "b", false},
		{"status", "Down", "down", true},
		{"part", "33 %", 1. / 3, true},
		{"part", "6.1 %", 0.0614, true},
		{"part", "6.2 %", 0.0614, false},
		{"ms", "640 µs", 0.64, true},
		{"ms", "640 ms", 0.64, false},
		{"ms", "1.39 s", 1388., true},
		{"ms", "1.39 ms", 1388., false},
		{"whole", "98", 98.7, true},
		{"whole", "99", 98.7, false},
		{"cost", "20.7M", 20_731_004.5, true},
		{"time", "3 h 12 min", 11_530., true},
		{"time", "3 h 11 min", 11_530., false},
	} {
		if got := same(c.unit, c.text, c.v); got != c.want {
			t.Errorf("%s %q for %v: %v", c.unit, c.text, c.v, got)
		}
	}
}

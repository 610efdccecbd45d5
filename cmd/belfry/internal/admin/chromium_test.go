package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what a browser should do at once.
const patience = 30 * time.Second

// findChromium returns the path of a Chromium, and false if there is none.
func findChromium() (string, bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// A chromium is one tab of a browser without a window. It is spoken to through a pair of pipes, in JSON objects that end with a zero
// byte: the DevTools protocol without a port.
type chromium struct {
	to      io.Writer
	ended   chan struct{} // closed when the browser has
	session string

	mu       sync.Mutex // guards what follows
	last     int
	answers  map[int]chan message
	requests []string // URLs
	troubles []string // what the console says
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// startChromium starts a browser that ends with the test, and opens an empty tab.
func startChromium(t *testing.T, path string) *chromium {
	t.Helper()
	ours, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // it refuses to run as root with one
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	cmd.ExtraFiles = []*os.File{ours, theirs}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	theirs.Close()
	c := &chromium{to: to, ended: make(chan struct{}), answers: map[int]chan message{}}
	go c.read(from)
	t.Cleanup(func() {
		_, _ = c.do("", "Browser.close", nil)
		select {
		case <-c.ended:
		case <-time.After(patience / 3):
			_ = cmd.Process.Kill()
		}
		to.Close()
		_ = cmd.Wait()
		from.Close()
		if t.Failed() {
			t.Logf("the browser said: %s", &said)
		}
	})
	c.open(t)
	return c
}

func (c *chromium) open(t *testing.T) {
	t.Helper()
	var target struct{ TargetID string }
	c.must(t, &target, "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	c.must(t, &attached, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.must(t, nil, domain+".enable", nil)
	}
}

// read hands out answers, and notes what else comes, until the browser ends.
func (c *chromium) read(from io.Reader) {
	defer close(c.ended)
	for in := bufio.NewReader(from); ; {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) == nil {
			c.take(m)
		}
	}
}

func (c *chromium) take(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case "":
		if answer := c.answers[m.ID]; answer != nil {
			answer <- m
			delete(c.answers, m.ID)
		}
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		_ = json.Unmarshal(m.Params, &p)
		c.requests = append(c.requests, p.Request.URL)
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		c.troubles = append(c.troubles, string(m.Params))
	}
}

// do sends a command and returns its result.
func (c *chromium) do(session, method string, params any) (json.RawMessage, error) {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.answers[id] = answer
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{id, session, method, params})
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if _, err := c.to.Write(append(text, 0)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	case <-c.ended:
		return nil, errors.New("the browser has ended")
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: no answer in %v", method, patience)
	}
}

func (c *chromium) must(t *testing.T, into any, method string, params any) {
	t.Helper()
	result, err := c.do(c.session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(result, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eval runs a script in the page, and stores what it returns.
func (c *chromium) eval(t *testing.T, into any, script string) {
	t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.must(t, &got, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true})
	if got.ExceptionDetails != nil {
		t.Fatalf("%s: %s", script, got.ExceptionDetails)
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		t.Fatalf("%s: %v in %s", script, err, got.Result.Value)
	}
}

// until waits for a condition of the page.
func (c *chromium) until(t *testing.T, condition string) {
	t.Helper()
	var ok bool
	c.eval(t, &ok, fmt.Sprintf(`(async () => {
		for (const end = Date.now() + %d; Date.now() < end; await new Promise(f => setTimeout(f, 10))) if (%s) return true;
		return false;
	})()`, (patience/2).Milliseconds(), condition))
	if !ok {
		t.Fatalf("it does not come about that %s", condition)
	}
}

// look sets the size of the window and whether it is dark.
func (c *chromium) look(t *testing.T, width, height int, dark bool) {
	t.Helper()
	c.must(t, nil, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	c.must(t, nil, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// screenshot returns the page as PNG, as far as it scrolls.
func (c *chromium) screenshot(t *testing.T) []byte {
	t.Helper()
	var shot struct{ Data []byte }
	c.must(t, &shot, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true})
	return shot.Data
}

// quiet fails the test if the console has said anything, or anybody else than the server at url was asked.
func (c *chromium) quiet(t *testing.T, url string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, trouble := range c.troubles {
		t.Errorf("the console says %s", trouble)
	}
	for _, asked := range c.requests {
		if !strings.HasPrefix(asked, url) && !strings.HasPrefix(asked, "data:") && asked != "about:blank" {
			t.Errorf("the page asked %s", asked)
		}
	}
	if len(c.requests) == 0 {
		t.Error("the page asked nobody, which cannot be")
	}
	c.troubles, c.requests = nil, nil
}

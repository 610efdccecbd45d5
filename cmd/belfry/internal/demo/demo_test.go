package demo

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"
)

func TestValidateNamesFlagAndRange(t *testing.T) {
	good := Config{Duration: DefaultDuration, Rate: DefaultRate}
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Rate = 0 }, "--rate must be 1 to 10000 requests a second, got 0"},
		{func(c *Config) { c.Rate = -1 }, "--rate must be 1 to 10000 requests a second, got -1"},
		{func(c *Config) { c.Rate = MaxRate + 1 }, "--rate must be 1 to 10000 requests a second, got 10001"},
		{func(c *Config) { c.Duration = 0 }, "--duration must be 100ms to 10m, got 0s"},
		{func(c *Config) { c.Duration = -time.Second }, "--duration must be 100ms to 10m, got -1s"},
		{func(c *Config) { c.Duration = time.Hour }, "--duration must be 100ms to 10m, got 1h0m0s"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", bad, err, c.want)
		}
	}
}

func TestOnlyATerminalIsDrawnOn(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := Output{Getenv: func(name string) string { return map[string]string{"TERM": "xterm"}[name] }}
	if o.drawable(file) || o.drawable(&bytes.Buffer{}) {
		t.Error("a file and a buffer are taken for terminals")
	}
}

func TestTheSecondInterruptAborts(t *testing.T) {
	i := newInterrupt(context.Background())
	i.press()
	if i.stopped.Err() == nil || i.aborted.Err() != nil {
		t.Fatal("the first interrupt stops, and does no more")
	}
	i.press()
	if i.aborted.Err() == nil {
		t.Fatal("the second interrupt aborts")
	}
}

func TestWhatKnowsMoreAvoidsSlowServers(t *testing.T) {
	cfg := Config{Duration: 400 * time.Millisecond, Rate: 800, Seed: 1}
	servers, err := startServers(cfg.Seed)
	if err != nil {
		t.Fatal(err)
	}
	defer stopServers(servers)
	pressed := newInterrupt(t.Context())
	defer pressed.abort()
	b := &board{cfg: cfg, servers: servers}
	requests := int64(len(times(cfg)))
	for _, p := range policies {
		res, err := runPolicy(cfg, p, b, pressed)
		if err != nil {
			t.Fatal(err)
		}
		if res.Requests != requests || res.Errors != 0 {
			t.Errorf("%s: %d requests, %d errors (%v), want all %d of the schedule", p.name, res.Requests, res.Errors, res.firstError, requests)
		}
		slow := 0.0 // half of the servers: 100 ms and more
		for _, e := range res.Endpoints[5:] {
			slow += e.Share
		}
		// Of 320 requests at random, half of them, 2.8 % is the standard deviation.
		if random := p.name == "random"; random != (slow > 0.41) {
			t.Errorf("%s: the slow half of the servers got %.3f", p.name, slow)
		}
	}
}

package demo

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"
)

func TestValidateNamesFlagAndRange(t *testing.T) {
	good := Config{Scenario: DefaultScenario, Duration: DefaultDuration}
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Rate = new(0) }, "--rate must be 1 to 10000 requests a second, got 0"},
		{func(c *Config) { c.Rate = new(-1) }, "--rate must be 1 to 10000 requests a second, got -1"},
		{func(c *Config) { c.Rate = new(MaxRate + 1) }, "--rate must be 1 to 10000 requests a second, got 10001"},
		{func(c *Config) { c.Duration = 0 }, "--duration must be 100ms to 10m, got 0s"},
		{func(c *Config) { c.Duration = -time.Second }, "--duration must be 100ms to 10m, got -1s"},
		{func(c *Config) { c.Duration = time.Hour }, "--duration must be 100ms to 10m, got 1h0m0s"},
		{func(c *Config) { c.Scenario = "" }, `--scenario must be one of spread, slow, hang, fast-fail, cold-start, one-stuck, got ""`},
		{func(c *Config) { c.Scenario = "Hang" }, `--scenario must be one of spread, slow, hang, fast-fail, cold-start, one-stuck, got "Hang"`},
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

package discover

import (
	"math"
	"net"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaults(t *testing.T) {
	want := Config{Interval: time.Minute, Jitter: 0.2, Timeout: 5 * time.Second, Resolver: net.DefaultResolver}
	if got := (Config{}).withDefaults(time.Minute); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{Scheme: "h2c+x.y-z", Interval: time.Millisecond, Jitter: 1, Timeout: 1, Network: "ip6"}, ""},
		{Config{Scheme: "http:"}, `discover: scheme must be letters, digits, +, - and dots, such as http, got "http:"`},
		{Config{Scheme: "1"}, "scheme must be"},
		{Config{Interval: time.Millisecond - 1}, "discover: interval must be at least 1ms, or 0 for the default, got 999.999µs"},
		{Config{Interval: -time.Hour}, "interval must be"},
		{Config{Jitter: -0.1}, "discover: jitter must be within 0 and 1, got -0.1"},
		{Config{Jitter: 1.1}, "jitter must be"},
		{Config{Jitter: math.NaN()}, "jitter must be"},
		{Config{Timeout: -1}, "discover: timeout must not be negative, got -1ns"},
		{Config{Network: "tcp"}, `discover: network must be "ip4", "ip6", "ip" or empty, got "tcp"`},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(strings.TrimPrefix(err.Error(), "discover: "), strings.TrimPrefix(c.want, "discover: ")) {
			t.Errorf("%+v: got %v, want %q", c.cfg, err, c.want)
		}
	}
}

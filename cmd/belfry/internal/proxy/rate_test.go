package proxy

import (
	"net/http"
	"strings"
	"testing"
)

func TestMoreThanTheRateIsAnswered429(t *testing.T) {
	target := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	p := startReloadable(t, func(c *Config) { c.Rate.PerSecond = 1 }, target)
	// refused sends requests one after the other until one is refused: two within a second are enough.
	refused := func() *http.Response {
		for range 100 {
			res, err := http.Get(p.url)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			switch res.StatusCode {
			case http.StatusNoContent:
			case http.StatusTooManyRequests:
				return res
			default:
				t.Fatalf("got %s", res.Status)
			}
		}
		return nil
	}
	res := refused()
	if res == nil {
		t.Fatal("a hundred requests at one in a second, and none was refused")
	}
	if after, reason := res.Header.Get("Retry-After"), res.Header.Get("X-Belfry-Reason"); after != "1" || reason != "rate: too many" {
		t.Errorf("retry after %q, reason %q", after, reason)
	}
	p.reload(t, nil, func(cfg *Config) { cfg.Rate = Rate{} })
	if res := refused(); res != nil {
		t.Errorf("without a rate: %s", res.Status)
	}
	p.reload(t, nil, func(cfg *Config) { cfg.Rate = Rate{PerSecond: 1, Burst: 3} })
	if res := refused(); res == nil {
		t.Error("with a rate again, none was refused")
	}
	if text := (Rate{PerSecond: 5, Burst: 3}).String(); !strings.Contains(text, "5 per 1s, burst 3") {
		t.Error(text)
	}
}

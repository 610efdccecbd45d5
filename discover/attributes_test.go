package discover

import "testing"

func TestOnHost(t *testing.T) {
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Insert("http://a:8080"), "a"},
		{Insert("http://a:8080/b?c#1"), "a"},
		{Insert("h2c://[::1]:80#2"), "::1"},
		{Insert("10.0.0.1:80"), "10.0.0.1"},
		{Insert("https://a"), "a"},
		{Insert("unix:///run/a"), "unix:///run/a"},
		{Insert(":80"), ":80"},
		{Insert("0"), "0"},
		{Change{Addr: "a:80", Host: "rack7"}, "rack7"},
		{Change{}, ""},
	} {
		if got := c.change.OnHost(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.change, got, c.want)
		}
	}
}

// TestMapAttributes has weights that come from a rule, and go through Merge and Subset.
func TestMapAttributes(t *testing.T) {
	weighted := Map(List("a:1", "b:1"), func(c Change) (Change, bool) {
		if c.Addr == "a:1" {
			c.Weight, c.Zone = 7, "z"
		}
		return c, true
	})
	f := follow(t, Subset{Size: 5, Identity: "me"}.Of(Merge(weighted)))
	<-f.ended
	if got := f.last["a:1"]; got.Weight != 7 || got.Zone != "z" || f.last["b:1"].Weight != 0 {
		t.Errorf("got %+v", f.last)
	}
}

package belfryhttp

import (
	"net/url"
	"strings"
	"testing"
)

func TestJoinedURLs(t *testing.T) {
	for _, c := range []struct{ base, to, want string }{
		{"http://a:8080", "http://svc/x?q=1", "http://a:8080/x?q=1"},
		{"https://a", "http://svc", "https://a"},
		{"https://a/", "http://svc/", "https://a/"},
		{"http://a", "http://svc//x/../y", "http://a//x/../y"},
		{"http://a/api", "http://svc/x", "http://a/api/x"},
		{"http://a/api/", "http://svc/x", "http://a/api/x"},
		{"http://a/api/v1", "http://svc", "http://a/api/v1"},
		{"http://a/api/", "http://svc/", "http://a/api/"},
		{"http://a/api", "http://svc//x/../y", "http://a/api//x/../y"},
		{"http://a/api", "http://svc/x%2Fy", "http://a/api/x%2Fy"},
		{"http://a/a%2Fb", "http://svc/x y", "http://a/a%2Fb/x%20y"},
		{"http://a/a%2Fb", "http://svc/x%2Fy", "http://a/a%2Fb/x%2Fy"},
		{"http://[::1]:80/api", "http://svc/x", "http://[::1]:80/api/x"},
		{"a:8080", "http://svc/x", "http://a:8080/x"},
		{"10.0.0.1", "http://svc/x", "http://10.0.0.1/x"},
	} {
		base, err := parseBase(c.base)
		if err != nil {
			t.Error(err)
			continue
		}
		to, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		before := *to
		if got := join(base, to).String(); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.to, c.base, got, c.want)
		}
		if *to != before {
			t.Errorf("%s was changed", c.to)
		}
	}
	base, _ := parseBase("http://a/api")
	if got := join(base, &url.URL{Path: "*"}).RequestURI(); got != "*" {
		t.Errorf("OPTIONS * became %q", got)
	}
	if got := join(base, nil).String(); got != "http://a/api" {
		t.Errorf("no URL became %q", got)
	}
}

func TestBaseURLsThatAreRefused(t *testing.T) {
	for _, addr := range []string{
		"", "http://", "http://:80", "ftp://a", "unix:///x", "http://a?q=1", "http://a/?", "http://a#f", "http://me:secret@a", "http://a b",
	} {
		if u, err := parseBase(addr); err == nil {
			t.Errorf("%q was taken for %v", addr, u)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

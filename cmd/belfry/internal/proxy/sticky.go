package proxy

import (
	"net/http"
)

// Sticky says what requests of one kind are known by: the value of a header or of a cookie. The zero value means that there are no kinds.
type Sticky struct{ Header, Cookie string }

func (s Sticky) on() bool { return s != Sticky{} }

// key returns what req is known by, and whether it is known at all.
func (s Sticky) key(req *http.Request) (string, bool) {
	if s.Header != "" {
		v := req.Header.Get(s.Header)
		return v, v != ""
	}
	c, err := req.Cookie(s.Cookie)
	return valueOf(c), err == nil
}

func valueOf(c *http.Cookie) string {
	if c == nil {
		return ""
	}
	return c.Value
}

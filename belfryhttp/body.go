package belfryhttp

import (
	"io"
	"net/http"
)

// hasBody reports whether there is something to read and to close in req.
func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// A leafBody is the request body of one call of a leaf. Nil is that of a request without.
type leafBody struct {
	*part
	owner bool // the request came without an upload around its body, so the leaf closes it
}

// attachBody puts a new part in the place of out's body.
func attachBody(out *http.Request) (*leafBody, error) {
	if !hasBody(out) {
		return nil, nil
	}
	handle, ok := out.Body.(*part)
	if !ok {
		handle = &part{up: &upload{src: out.Body, owned: true}}
	}
	p, err := handle.attach()
	if err != nil {
		return nil, err
	}
	out.Body = p
	return &leafBody{part: p, owner: !ok}, nil
}

// close ends the part. RoundTrippers do so themselves, or should.
func (b *leafBody) close() {
	if b != nil {
		b.part.Close()
	}
}

// giveBack leaves the body to the caller, as it was. It reports false, and does nothing, if it has been read.
func (b *leafBody) giveBack() bool {
	if b == nil {
		return true
	}
	return !b.part.hasBegun() && (!b.owner || b.up.abandon())
}

// recorded reports whether what was read of the body is there for another attempt.
func (b *leafBody) recorded() bool {
	return b != nil && !b.owner && b.up.recorded() && b.up.repeatable()
}

// failed reports whether it was reading the body that failed.
func (b *leafBody) failed() bool { return b != nil && b.up.failure() != nil }

// sent makes the leaf close the body when nobody reads it any more.
func (b *leafBody) sent() {
	if b != nil && b.owner {
		b.up.release()
	}
}

// newUpload returns the upload that the Tripper owns for req's body. It is recorded if the Config says so and the
// body has no GetBody, nor a length that makes recording it pointless.
func newUpload(req *http.Request, limit int64, once func()) *upload {
	u := &upload{src: req.Body, owned: true}
	if req.GetBody != nil {
		return u
	}
	u.once = once
	if req.ContentLength <= limit {
		u.limit = limit
	}
	return u
}

// repeat returns req for another attempt, false if its body cannot be sent again. This is Copy of the Semantics.
//
// It is right before the first attempt as well as after it: should a copy have become useless meanwhile, a leaf refuses
// it. The trailer is shared, for it is filled in while the body is read.
func repeat(req *http.Request) (*http.Request, bool) {
	if !canRepeat(req) {
		return nil, false
	}
	again := req.WithContext(req.Context())
	again.Header = req.Header.Clone()
	if req.URL != nil {
		u := *req.URL
		again.URL = &u
	}
	switch up := shared(req); {
	case up != nil:
		again.Body = &part{up: up}
	case hasBody(req):
		again.Body = &part{up: &upload{open: req.GetBody}}
	}
	return again, true
}

// canRepeat reports whether req's body could be sent again, as things stand.
func canRepeat(req *http.Request) bool {
	if up := shared(req); up != nil {
		return up.repeatable()
	}
	return !hasBody(req) || req.GetBody != nil
}

// shared returns the upload that further attempts of req read too, nil if each has a body of its own.
func shared(req *http.Request) *upload {
	if p, ok := req.Body.(*part); ok && (p.up.recorded() || req.GetBody == nil) {
		return p.up
	}
	return nil
}

// getBody is GetBody for a request whose body is recorded.
func (u *upload) getBody() (io.ReadCloser, error) { return (&part{up: u}).attach() }

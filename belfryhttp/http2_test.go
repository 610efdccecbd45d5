package belfryhttp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

// HTTP/2 frames, as far as this test needs them (RFC 9113, 4.1 and 6).
const (
	frameData, frameHeaders, frameReset, frameSettings = 0, 1, 3, 4
	flagEndStream, flagEndHeaders, flagAck             = 1, 4, 1
	refusedStream                                      = 7
)

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

func readFrame(r io.Reader) (frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	f.payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

func (f frame) bytes() []byte {
	n := len(f.payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), f.kind, f.flags}
	return append(binary.BigEndian.AppendUint32(b, f.stream), f.payload...)
}

// refuseStreams is an HTTP/2 server that refuses the first n streams once it has their whole request, and answers the
// others with 200. It sends what it was given to got.
func refuseStreams(conn net.Conn, n int, got chan<- string) {
	defer conn.Close()
	out := make(chan frame, 100) // a pipe has no buffer, and both sides write at once
	defer close(out)
	go func() {
		for f := range out {
			_, _ = conn.Write(f.bytes())
		}
	}()
	r := bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	out <- frame{kind: frameSettings}
	body := ""
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		switch f.kind {
		case frameSettings:
			if f.flags&flagAck == 0 {
				out <- frame{kind: frameSettings, flags: flagAck}
			}
			continue
		case frameData:
			body += string(f.payload)
		case frameHeaders:
			body = ""
		default:
			continue
		}
		if f.flags&flagEndStream == 0 {
			continue
		}
		got <- body
		if n--; n >= 0 {
			out <- frame{kind: frameReset, stream: f.stream, payload: []byte{0, 0, 0, refusedStream}}
		} else {
			const status200 = 0x88 // RFC 7541, appendix A
			out <- frame{kind: frameHeaders, flags: flagEndHeaders | flagEndStream, stream: f.stream, payload: []byte{status200}}
		}
	}
}

// What an HTTP/2 server refuses without having looked at it, http.Transport sends again by itself, if it can have the
// body again. It can, from our buffer.
func TestTransportReplaysARefusedStreamFromTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		got := make(chan string, 10)
		h := n.listen("a:80")
		go func() {
			for {
				conn, err := h.Accept()
				if err != nil {
					return
				}
				go refuseStreams(conn, 2, got)
			}
		}()
		src := newSource(t, "hello")
		rt := RoundTripper(Transport(n.transport(h2c())), Config{BodyBuffer: 100})
		res, err := rt.RoundTrip(newRequest(t, "POST", "http://a", src))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		res.Body.Close()
		for range 3 {
			if s := <-got; s != "hello" {
				t.Errorf("the server got %q", s)
			}
		}
		src.wantClosed(1)

		// Without a buffer it is sent once, and nobody claims otherwise.
		src = newSource(t, "hello")
		rt = RoundTripper(retried(n.transport(h2c())))
		_, err = rt.RoundTrip(newRequest(t, "POST", "http://a", src))
		if err == nil || errors.Is(err, belfry.ErrRejected) || !strings.Contains(err.Error(), "REFUSED_STREAM") {
			t.Errorf("got %v", err)
		}
		src.wantClosed(1)
		if len(got) != 1 || rt.Stats().SentOnce != 1 {
			t.Errorf("sent %d times; %+v", len(got), rt.Stats())
		}
	})
}

// A connection that turns out to be stale when it is used again: http.Transport sends a request with an Idempotency-Key again by
// itself. Each time the body is whole, and in the end it is closed once.
func TestTransportReplaysOnAStaleConnectionFromTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		got := make(chan string, 10)
		var conns atomic.Int32
		h := n.listen("a:80")
		go func() {
			for {
				conn, err := h.Accept()
				if err != nil {
					return
				}
				first := conns.Add(1) == 1
				go func() {
					defer conn.Close()
					r := bufio.NewReader(conn)
					for i := 0; ; i++ {
						req, err := http.ReadRequest(r)
						if err != nil {
							return
						}
						b, _ := io.ReadAll(req.Body)
						got <- string(b)
						if first && i == 1 {
							return
						}
						_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
					}
				}()
			}
		}()
		rt := RoundTripper(Transport(n.transport(nil)), Config{BodyBuffer: 100})
		for _, text := range []string{"one", "two"} {
			src := newSource(t, text)
			req := newRequest(t, "POST", "http://a", src)
			req.Header.Set("Idempotency-Key", text)
			res, err := rt.RoundTrip(req)
			if err != nil || res.StatusCode != 204 {
				t.Fatalf("%v, %v", res, err)
			}
			src.wantClosed(1)
			time.Sleep(time.Second)
		}
		if a, b, c := <-got, <-got, <-got; a != "one" || b != "two" || c != "two" {
			t.Errorf("the server got %q, %q, %q", a, b, c)
		}
	})
}

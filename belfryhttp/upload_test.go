package belfryhttp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A source is a body that knows how often it was closed, and notices reading that it must not see.
type source struct {
	io.Reader
	closed  atomic.Int32
	reading atomic.Int32
	t       testing.TB
}

func newSource(t testing.TB, text string) *source {
	return &source{Reader: strings.NewReader(text), t: t}
}

func (s *source) Read(b []byte) (int, error) {
	if s.reading.Add(1) > 1 {
		s.t.Error("two goroutines read the body at once")
	}
	defer s.reading.Add(-1)
	return s.Reader.Read(b)
}

func (s *source) Close() error {
	s.closed.Add(1)
	return nil
}

func (s *source) wantClosed(n int32) {
	s.t.Helper()
	if got := s.closed.Load(); got != n {
		s.t.Errorf("body closed %d times, want %d", got, n)
	}
}

func attach(t testing.TB, u *upload) *part {
	t.Helper()
	p, err := (&part{up: u}).attach()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantRead(t testing.TB, r io.Reader, want string) {
	t.Helper()
	got, err := io.ReadAll(r)
	if string(got) != want || err != nil {
		t.Errorf("read %q, %v; want %q", got, err, want)
	}
}

func TestUploadIsClosedOnceByTheLastToLeave(t *testing.T) {
	src := newSource(t, "hello")
	u := &upload{src: src, owned: true, limit: 100}
	first, second := attach(t, u), attach(t, u)
	wantRead(t, first, "hello")
	first.Close()
	first.Close()
	second.Close()
	src.wantClosed(0) // the owner may still try again
	third := attach(t, u)
	wantRead(t, third, "hello")
	u.release()
	src.wantClosed(1) // it was read to its end: nobody needs it
	third.Close()
	src.wantClosed(1)
}

func TestUploadStaysOpenWhileATransportSendsIt(t *testing.T) {
	src := newSource(t, "hello")
	u := &upload{src: src, owned: true}
	p := attach(t, u)
	u.release()
	src.wantClosed(0) // an early response; the request is still being sent
	if n, err := p.Read(make([]byte, 2)); n != 2 || err != nil {
		t.Errorf("Read = %d, %v", n, err)
	}
	p.Close()
	src.wantClosed(1)
	if _, err := p.Read(make([]byte, 2)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("Read after Close: %v", err)
	}
}

func TestUploadThatIsReadToItsEndIsClosedEvenIfTheTransportForgets(t *testing.T) {
	src := newSource(t, "hello")
	u := &upload{src: src, owned: true}
	p := attach(t, u)
	u.release()
	wantRead(t, p, "hello")
	src.wantClosed(1)
	p.Close()
	src.wantClosed(1)
}

func TestUploadNobodyReadIsClosedByItsOwner(t *testing.T) {
	src := newSource(t, "hello")
	u := &upload{src: src, owned: true}
	u.release()
	src.wantClosed(1)
	if _, err := (&part{up: u}).attach(); !errors.Is(err, errSentOnce) {
		t.Errorf("attach after the end: %v", err)
	}
}

func TestUploadThatIsClosedWithoutReadingCanBeSent(t *testing.T) {
	src := newSource(t, "hello")
	u := &upload{src: src, owned: true}
	attach(t, u).Close()
	if !u.repeatable() {
		t.Error("not repeatable although nothing was read")
	}
	wantRead(t, attach(t, u), "hello")
	u.release()
	src.wantClosed(1)
}

func TestUploadWithoutRecordIsSentOnce(t *testing.T) {
	once := 0
	u := &upload{src: newSource(t, "hello"), owned: true, once: func() { once++ }}
	p, early := attach(t, u), attach(t, u)
	wantRead(t, p, "hello")
	if once != 1 {
		t.Errorf("told %d times that the body is sent once, want 1", once)
	}
	if u.repeatable() {
		t.Error("repeatable although it was read and not recorded")
	}
	if _, err := early.Read(make([]byte, 1)); !errors.Is(err, errSentOnce) {
		t.Errorf("a part from before the first read got %v", err)
	}
	if _, err := (&part{up: u}).attach(); !errors.Is(err, errSentOnce) {
		t.Errorf("attach: %v", err)
	}
}

func TestUploadRecordsUpToItsLimit(t *testing.T) {
	for _, c := range []struct {
		length int
		again  bool
	}{{0, true}, {99, true}, {100, true}, {101, false}} {
		once := 0
		text := strings.Repeat("x", c.length)
		u := &upload{src: newSource(t, text), owned: true, limit: 100, once: func() { once++ }}
		wantRead(t, attach(t, u), text)
		if got := u.repeatable(); got != c.again {
			t.Errorf("%d bytes: repeatable = %v", c.length, got)
		}
		if c.again {
			wantRead(t, attach(t, u), text)
		}
		if (once == 0) != c.again || once > 1 {
			t.Errorf("%d bytes: told %d times", c.length, once)
		}
	}
}

func TestUploadWhoseSourceFailsCannotBeRepeated(t *testing.T) {
	broken := errors.New("disk on fire")
	u := &upload{src: io.NopCloser(io.MultiReader(strings.NewReader("he"), errReader{broken})), owned: true, limit: 100}
	got, err := io.ReadAll(attach(t, u))
	if string(got) != "he" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v", got, err)
	}
	if u.repeatable() || !errors.Is(u.failure(), broken) {
		t.Errorf("repeatable = %v, failure = %v", u.repeatable(), u.failure())
	}
	if _, err := io.ReadAll(attach(t, u)); !errors.Is(err, broken) {
		t.Errorf("a second part read: %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestUploadWhoseSourcePanics(t *testing.T) {
	u := &upload{src: io.NopCloser(panicReader{}), owned: true, limit: 100}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = attach(t, u).Read(make([]byte, 1))
	}()
	if _, err := attach(t, u).Read(make([]byte, 1)); !errors.Is(err, errPanicked) {
		t.Errorf("the next part read: %v", err)
	}
}

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("no") }

func TestUploadOpensLate(t *testing.T) {
	src, opened := newSource(t, "hello"), 0
	u := &upload{open: func() (io.ReadCloser, error) { opened++; return src, nil }}
	p := attach(t, u)
	if opened != 0 {
		t.Error("opened before it was read")
	}
	wantRead(t, p, "hello")
	p.Close()
	src.wantClosed(1)
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}

	unread := attach(t, &upload{open: func() (io.ReadCloser, error) { panic("opened") }})
	unread.Close()

	no := errors.New("no such file")
	failing := &upload{open: func() (io.ReadCloser, error) { return nil, no }}
	if _, err := attach(t, failing).Read(make([]byte, 1)); !errors.Is(err, no) {
		t.Errorf("read %v", err)
	}
}

func TestUploadIsHandedToTheNextPartWhileTheLastIsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		src := &source{Reader: r, t: t}
		u := &upload{src: src, owned: true, limit: 100}
		stale, next := attach(t, u), attach(t, u)
		go func() { _, _ = stale.Read(make([]byte, 100)) }() // a transport that does not notice that its request is over
		synctest.Wait()
		stale.Close()

		got := make(chan string)
		go func() {
			b, _ := io.ReadAll(next)
			got <- string(b)
		}()
		synctest.Wait()
		_, _ = w.Write([]byte("hel")) // goes to the stale part
		_, _ = w.Write([]byte("lo"))
		w.Close()
		if s := <-got; s != "hello" {
			t.Errorf("the next part read %q", s)
		}
	})
}

func TestUploadPartThatWaitsCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		u := &upload{src: r, owned: true, limit: 100}
		reader, waiter := attach(t, u), attach(t, u)
		go func() { _, _ = reader.Read(make([]byte, 1)) }()
		synctest.Wait()
		ended := make(chan error)
		go func() {
			_, err := waiter.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		waiter.Close()
		if err := <-ended; !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("the waiting part got %v", err)
		}
		w.Close()
	})
}

func TestUploadThatIsBeingReadForTheFirstTimeIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		u := &upload{src: r, owned: true}
		p := attach(t, u)
		go func() { _, _ = p.Read(make([]byte, 1)) }()
		synctest.Wait()
		if u.repeatable() {
			t.Error("repeatable although a transport is about to get the first bytes")
		}
		w.Close()
	})
}

func TestUploadThatOpensAfterEverybodyHasLeftIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, opening := newSource(t, "hello"), make(chan struct{})
		p := attach(t, &upload{open: func() (io.ReadCloser, error) { <-opening; return src, nil }})
		go func() { _, _ = p.Read(make([]byte, 1)) }()
		synctest.Wait()
		p.Close()
		src.wantClosed(0)
		close(opening)
		synctest.Wait()
		src.wantClosed(1)
	})
}

func TestUploadIsNotRecordedInVain(t *testing.T) {
	for _, c := range []struct {
		length, limit int64
		want          bool
	}{{5, 5, true}, {6, 5, false}, {-1, 5, true}, {-1, 0, false}, {0, 0, false}} {
		req := newRequest(t, "PUT", "http://a", newSource(t, ""))
		req.ContentLength = c.length
		if got := newUpload(req, c.limit, nil).recorded(); got != c.want {
			t.Errorf("length %d, limit %d: recorded = %v", c.length, c.limit, got)
		}
	}
}

func TestUploadOfALeafIsGivenBackOnlyUntouched(t *testing.T) {
	src := newSource(t, "hello")
	u := &upload{src: src, owned: true}
	attach(t, u).Close()
	if !u.abandon() {
		t.Error("not given back although nothing was read")
	}
	u.release()
	src.wantClosed(0)

	read := &upload{src: src, owned: true}
	_, _ = attach(t, read).Read(make([]byte, 1))
	if read.abandon() {
		t.Error("given back although it was read")
	}
}

// Many parts read, leave and come at random; each reads the whole body or finds out that it cannot.
func TestUploadUnderStress(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		text := make([]byte, rng.IntN(2000))
		for i := range text {
			text[i] = byte(rng.Uint32())
		}
		limit := int64(rng.IntN(2500))
		src := newSource(t, "")
		src.Reader = bytes.NewReader(text)
		u := &upload{src: src, owned: true, limit: limit}
		var wg sync.WaitGroup
		for range 1 + rng.IntN(4) {
			seed := rng.Uint64()
			wg.Go(func() { readSome(t, u, rand.New(rand.NewPCG(seed, 1)), text) })
		}
		wg.Wait()
		if fits := int64(len(text)) <= limit; fits && !u.repeatable() {
			t.Errorf("%d bytes under a limit of %d cannot be repeated", len(text), limit)
		}
		u.release()
		src.wantClosed(1)
	}
}

func readSome(t *testing.T, u *upload, rng *rand.Rand, text []byte) {
	p, err := (&part{up: u}).attach()
	if err != nil {
		if !errors.Is(err, errSentOnce) {
			t.Error(err)
		}
		return
	}
	defer p.Close()
	var got []byte
	for {
		b := make([]byte, 1+rng.IntN(300))
		n, err := p.Read(b)
		got = append(got, b[:n]...)
		switch {
		case err == io.EOF:
			if !bytes.Equal(got, text) {
				t.Errorf("a part read %d bytes to the end, want the %d of the body", len(got), len(text))
			}
			return
		case errors.Is(err, errSentOnce) && int64(len(text)) > u.limit:
			return
		case err != nil:
			t.Error(err)
			return
		case rng.IntN(20) == 0:
			return
		}
	}
}

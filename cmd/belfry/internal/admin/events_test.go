package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// A slow is a client that takes what is written when it is told to.
type slow struct {
	header http.Header
	take   chan struct{}
	took   chan string
}

func newSlow() *slow {
	return &slow{header: http.Header{}, take: make(chan struct{}), took: make(chan string, 100)}
}

func (s *slow) Header() http.Header { return s.header }
func (s *slow) WriteHeader(int)     {}
func (s *slow) FlushError() error   { return nil }
func (s *slow) Write(b []byte) (int, error) {
	<-s.take
	s.took <- string(b)
	return len(b), nil
}

func listen(ctx context.Context, a *Admin, w http.ResponseWriter) (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/events", nil).WithContext(ctx))
	}()
	return done
}

func TestASlowReaderHoldsNobodyAndSeesTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		p := busy(at)
		a := New(p)
		ctx, cancel := context.WithCancel(t.Context())
		lame, quick := newSlow(), newSlow()
		close(quick.take)
		over := []<-chan struct{}{listen(ctx, a, lame), listen(ctx, a, quick)}
		synctest.Wait()
		for i := range 20 {
			p.change(func(s *proxy.State) { s.Requests.Total = uint64(i) })
			at = at.Add(tick)
			a.tick(at)
			synctest.Wait()
		}
		if n := len(quick.took); n != 21 {
			t.Errorf("the quick reader has %d events, want the opening and 20", n)
		}
		if n := len(lame.took); n != 0 {
			t.Errorf("the slow reader has %d events", n)
		}
		lame.take <- struct{}{} // the opening, from long ago
		lame.take <- struct{}{} // and what follows it
		synctest.Wait()
		<-lame.took
		if got := decode[update](t, <-lame.took).State.Requests.Total; got != 19 {
			t.Errorf("after the opening the slow reader sees event %d, want the latest", got)
		}
		cancel()
		close(lame.take)
		for _, done := range over {
			<-done
		}
		if a.stream.heard() {
			t.Error("nobody listens any more, and it does not know")
		}
	})
}

// decode returns what is in a server-sent event.
func decode[T any](t *testing.T, event string) T {
	t.Helper()
	var v T
	_, data, _ := strings.Cut(event, "\ndata: ")
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%v in %q", err, event)
	}
	return v
}

func TestAllReadersShareOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		a := New(busy(at))
		ctx, cancel := context.WithCancel(t.Context())
		var readers []*slow
		for range maxReaders {
			r := newSlow()
			close(r.take)
			readers = append(readers, r)
			listen(ctx, a, r)
		}
		synctest.Wait()
		if w := ask(a, http.MethodGet, "/api/events"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one reader too many is answered %d", w.Code)
		}
		for i := range 2 {
			a.tick(at.Add(time.Duration(i) * tick))
			synctest.Wait()
		}
		first := readers[0]
		<-first.took
		want := <-first.took
		for _, r := range readers[1:] {
			<-r.took
			if got := <-r.took; got != want {
				t.Fatalf("readers see %q and %q", got, want)
			}
		}
		cancel()
		synctest.Wait()
		last := newSlow()
		close(last.take)
		ctx, cancel = context.WithCancel(t.Context())
		over := listen(ctx, a, last)
		synctest.Wait()
		if got := <-last.took; !strings.HasPrefix(got, "event: opening\n") || len(decode[opening](t, got).Timeline) != 1 {
			t.Errorf("the first event is %q", got)
		}
		cancel()
		<-over
	})
}

func TestNobodyListensSoNothingIsWritten(t *testing.T) {
	at := time.Now()
	a := New(busy(at))
	a.tick(at)
	if latest, _ := a.stream.read(); latest != nil {
		t.Errorf("an event for nobody: %q", latest)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(busy(time.Now()))
		a.Start()
		r := newSlow()
		close(r.take)
		over := listen(t.Context(), a, r)
		time.Sleep(3500 * time.Millisecond)
		a.Close()
		<-over
		if n := len(r.took); n != 4 {
			t.Errorf("%d events in 3.5 s, want the opening and 3", n)
		}
	})
}

func TestEventsOverARealConnection(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	s := serve(t, a)
	res, err := http.Get(s.URL + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("it is of type %s", got)
	}
	lines := bufio.NewReader(res.Body)
	next := func() string {
		t.Helper()
		var all strings.Builder
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "\n" {
				return all.String()
			}
			all.WriteString(line)
		}
	}
	if got := decode[opening](t, next()); got.Capacity != timeline || got.Step != 1000 || got.State.Address != "127.0.0.1:8080" {
		t.Errorf("it opens with %+v", got)
	}
	p.change(func(s *proxy.State) { s.Draining = true })
	a.tick(at.Add(tick))
	if got := decode[update](t, next()); got.State.Status != Draining {
		t.Errorf("then it says %s", got.State.Status)
	}
	a.Close()
	if _, err := lines.ReadByte(); err == nil {
		t.Error("there is more after Close")
	}
}

func TestReadersComeAndGoWhileItTicks(t *testing.T) {
	p := busy(time.Now())
	a := New(p)
	a.Start()
	defer a.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
				<-listen(ctx, a, httptest.NewRecorder())
				cancel()
			}
		})
	}
	all.Go(func() {
		at := time.Now()
		for i := range 200 {
			p.answer(1, 200, "", time.Millisecond, 1)
			a.tick(at.Add(time.Duration(i) * tick))
		}
	})
	all.Wait()
	if a.stream.heard() {
		t.Error("a reader stayed behind")
	}
}

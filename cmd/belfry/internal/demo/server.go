package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
	"github.com/belfry-go/belfry/load"
)

// serverHeader tells in an answer which server gave it.
const serverHeader = "Demo-Server"

// A server is one endpoint: a real HTTP server on the loopback interface.
type server struct {
	lab.DemoServer
	number, of int
	seed       uint64
	inFlight   atomic.Int64
	url        string
	http       *http.Server
	visit      atomic.Pointer[visit] // nil before the first trial
}

// A visit is a server's part in a trial.
type visit struct {
	*trial
	lost atomic.Bool // the request that is to be, is
}

// startServers starts those of p.
func startServers(p plan) ([]*server, error) {
	var all []*server
	for i := range p.Servers {
		s, err := startServer(p, i)
		if err != nil {
			stopServers(all)
			return nil, fmt.Errorf("start the demo's servers: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

func startServer(p plan, number int) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := newServer(p, number)
	s.url = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.http.Serve(listener) }() // Should it end early, requests fail and are counted so.
	return s, nil
}

func newServer(p plan, number int) *server {
	return &server{DemoServer: p.Servers[number], number: number, of: len(p.Servers), seed: p.seed}
}

func stopServers(all []*server) {
	for _, s := range all {
		_ = s.http.Close()
	}
}

// enter makes t the trial that the server is in. No request is in flight then.
func (s *server) enter(t *trial) { s.visit.Store(&visit{trial: t}) }

// joins is how long after the beginning of a trial clients hear of the server.
func (s *server) joins() time.Duration {
	if s.Here == nil {
		return 0
	}
	return time.Duration(s.Here[0].From) * time.Microsecond
}

// ServeHTTP answers the request whose number is the path, after its latency here.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseUint(r.URL.Path[1:], 10, 64)
	visit := s.visit.Load()
	if err != nil || visit == nil {
		http.NotFound(w, r)
		return
	}
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	now := time.Since(visit.start)
	latency, class := s.answer(n, now)
	if s.loses(visit, now) {
		select { // It comes back once nobody can be misled by it any more.
		case <-visit.sent:
		case <-r.Context().Done():
		}
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		w.Header().Set(serverHeader, strconv.Itoa(s.number))
		if class == load.Failure {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	case <-r.Context().Done():
	}
}

// loses reports whether a request that comes now is the one that does not come back.
func (s *server) loses(v *visit, now time.Duration) bool {
	return len(s.Lost) > 0 && s.Lost[0].Has(now.Microseconds()) && v.lost.CompareAndSwap(false, true)
}

// answer returns how long request n takes here if it comes now, and how it ends. What is by chance depends on nothing else, so
// that a policy cannot be lucky: whichever one sends request n to this server, it takes the same time.
func (s *server) answer(n uint64, now time.Duration) (time.Duration, load.Class) {
	var random rand.PCG
	random.Seed(s.seed, n*uint64(s.of)+uint64(s.number))
	at, class := s.Answer(now.Microseconds(), rand.New(&random))
	return time.Duration(at)*time.Microsecond - now.Truncate(time.Microsecond), class
}
